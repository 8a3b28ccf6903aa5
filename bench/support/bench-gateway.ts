import { join } from 'node:path';
import { PlatformConfig } from '../../src/contracts/index.ts';
import { gateway } from '../../src/daemons/gateway/index.ts';
import type { GatewayServices } from '../../src/daemons/gateway/services.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { type RunningDaemon, startDaemon } from '../../src/daemons/run-daemon.ts';
import type { StartOptions } from '../../src/daemons/start-options.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { systemClock } from '../../src/kit/time/clock.ts';

export interface BenchGatewayOptions {
  /** Project folder. */
  folder: string;
  /** Default: `.svc` in the folder. */
  dataDir?: string;
  config?: object;
  /** Static token of an administrator. */
  token?: string;
  /** Default: any free port. */
  port?: number;
  /** Default: no other services. */
  peers?: ReturnType<typeof createPeers>;
}

/** Returns the options of a service in this process, without logging, with fixed keys. */
export function benchDaemonOptions({
  folder,
  dataDir = join(folder, '.svc'),
  config = {},
  token,
  port = 0,
  peers = createPeers(),
}: BenchGatewayOptions): StartOptions {
  const { gateway: own } = config as { gateway?: object };
  const staticTokens = token ? { [token]: { hostId: 'operator', namespaceId: 'default' } } : {};
  return {
    config: PlatformConfig.parse({ ...config, gateway: { staticTokens, ...own } }),
    profile: 'development',
    projectDir: folder,
    dataDir,
    keys: {
      jwtSecret: 'j'.repeat(40),
      previousJwtSecret: null,
      internalSecret: 'i'.repeat(40),
      masterKey: Buffer.alloc(32, 7).toString('base64url'),
    },
    operator: null,
    clock: systemClock,
    random: systemRandom(),
    peers,
    output: { write: () => {}, flush: () => {} },
    logLevel: 'fatal',
    listen: { host: '127.0.0.1', port },
  };
}

/** Starts only a gateway. */
export const startBenchGateway = (options: BenchGatewayOptions): Promise<RunningDaemon<GatewayServices>> =>
  startDaemon(gateway, benchDaemonOptions(options));
