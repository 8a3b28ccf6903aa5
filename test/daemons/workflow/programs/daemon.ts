import { writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { PlatformConfig } from '../../../../src/contracts/index.ts';
import { createPeers } from '../../../../src/daemons/peers.ts';
import { startDaemon } from '../../../../src/daemons/run-daemon.ts';
import { workflow } from '../../../../src/daemons/workflow/index.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { systemRandom } from '../../../../src/kit/random.ts';

/** daemon.ts <data folder> <config as JSON>: a workflow service in a process of its own, there to be killed; prints its URL. */
const [dataDir, config] = process.argv.slice(2) as [string, string];
const daemon = await startDaemon(workflow, {
  config: PlatformConfig.parse(JSON.parse(config)),
  profile: 'development',
  projectDir: dataDir,
  dataDir,
  keys: {
    jwtSecret: null,
    previousJwtSecret: null,
    internalSecret: 'an-internal-test-secret-of-enough-length',
    masterKey: Buffer.alloc(32, 7).toString('base64url'),
  },
  operator: null,
  clock: systemClock,
  random: systemRandom(),
  peers: createPeers(),
  output: { write: () => {}, flush: () => {} },
  listen: { host: '127.0.0.1', port: 0 },
});
process.on('SIGTERM', () => void daemon.close().then(() => process.exit(0)));
writeSync(1, `${daemon.url}\n`);
// Those that are killed would leave nothing to the next.
flushCompileCache();
