import { readFileSync } from 'node:fs';
import { PlatformConfig } from '../../src/contracts/index.ts';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { startDaemon } from '../../src/daemons/run-daemon.ts';
import { systemClock } from '../../src/kit/clock.ts';
import { systemRandom } from '../../src/kit/random.ts';

/** A gateway alone, on a folder and a port, that may be killed at any time: `gateway-process.ts <folder> <port> <token>`. */
const [folder, port, token] = process.argv.slice(2);

const config = PlatformConfig.parse({
  ...JSON.parse(readFileSync(`${folder}/svc.config.json`, 'utf8')),
  gateway: { staticTokens: { [token!]: { hostId: 'operator', namespaceId: 'default' } } },
});
const output = { write: () => {}, flush: () => {} };
await startDaemon(gateway, {
  config,
  profile: 'development',
  projectDir: folder!,
  dataDir: `${folder}/.svc`,
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
  output,
  logLevel: 'fatal',
  listen: { host: '127.0.0.1', port: Number(port) },
});
process.stdout.write('ready\n');
