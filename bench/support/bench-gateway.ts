import { join } from 'node:path';
import { PlatformConfig } from '../../src/contracts/index.ts';
import { gateway } from '../../src/daemons/gateway/index.ts';
import type { GatewayServices } from '../../src/daemons/gateway/services.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { type RunningDaemon, startDaemon } from '../../src/daemons/run-daemon.ts';
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
}

/** Starts only a gateway in this process, without logging, with fixed keys. */
export function startBenchGateway({
  folder,
  dataDir = join(folder, '.svc'),
  config = {},
  token,
  port = 0,
}: BenchGatewayOptions): Promise<RunningDaemon<GatewayServices>> {
  const staticTokens = token ? { [token]: { hostId: 'operator', namespaceId: 'default' } } : {};
  return startDaemon(gateway, {
    config: PlatformConfig.parse({ gateway: { staticTokens }, ...config }),
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
    peers: createPeers(),
    output: { write: () => {}, flush: () => {} },
    logLevel: 'fatal',
    listen: { host: '127.0.0.1', port },
  });
}
