import { openSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformConfig } from '../../../src/contracts/index.ts';
import { gateway } from '../../../src/daemons/gateway/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { startDaemon } from '../../../src/daemons/run-daemon.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { BufferedOutput } from '../../../src/kit/telemetry/output.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';

/** Our gateway with all features and access logging. `argv`: upstream, JWT secret, static token, data folder, processes. */
const [, , upstream, jwtSecret, staticToken, dataDir, processes] = process.argv as string[];
await mkdir(dataDir!, { recursive: true });

const { port } = await startDaemon(gateway, {
  config: PlatformConfig.parse({
    gateway: {
      processes: Number(processes),
      staticTokens: { [staticToken!]: { hostId: 'bench', namespaceId: 'bench' } },
    },
    plugins: [],
  }),
  profile: 'production',
  projectDir: dataDir!,
  dataDir: dataDir!,
  keys: {
    jwtSecret: jwtSecret!,
    previousJwtSecret: null,
    internalSecret: 'bench-internal-secret-of-enough-bytes',
    masterKey: Buffer.alloc(32).toString('base64url'),
  },
  operator: null,
  clock: systemClock,
  random: systemRandom(),
  peers: createPeers({ rest: upstream!, workflow: upstream! }),
  output: new BufferedOutput(openSync(join(dataDir!, 'log'), 'a'), systemClock),
  listen: { host: '127.0.0.1', port: 0 },
});
console.log(port);
