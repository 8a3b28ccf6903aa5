import { mkdirSync } from 'node:fs';
import { PlatformConfig } from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { startDaemon } from '../../src/daemons/run-daemon.ts';
import { workflow } from '../../src/daemons/workflow/index.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { EVENT_LINE } from '../../src/kit/telemetry/analytics.ts';
import { systemClock } from '../../src/kit/time/clock.ts';

/** Messages to the parent process. */
export type ServiceMessage = { url: string } | { ended: string[] };

/**
 * A single workflow service: `workflow-process.ts <project folder> <config as JSON>`. Reports its URL and finished runs to its parent, taken
 * from its own events, because polling would distort the measurement.
 */
const [projectDir, config] = process.argv.slice(2) as [string, string];
const random = systemRandom();
let ended: string[] = [];

function take(line: string): void {
  const found = line.startsWith(EVENT_LINE) && /"type":"workflow\.run\..*"runId":"(\w+)"/.exec(line);
  if (!found) return;
  if (ended.push(found[1]!) === 1) setImmediate(sendEnded);
}

function sendEnded(): void {
  // The parent disconnects while the service executes further runs.
  if (process.connected) process.send!({ ended } satisfies ServiceMessage);
  ended = [];
}

const dataDir = `${projectDir}/.svc`;
mkdirSync(dataDir, { recursive: true, mode: 0o700 });
const daemon = await startDaemon(workflow, {
  config: PlatformConfig.parse(JSON.parse(config)),
  profile: 'development',
  projectDir,
  dataDir,
  keys: {
    jwtSecret: null,
    previousJwtSecret: null,
    // Services that share a store call each other with this secret.
    internalSecret: 'i'.repeat(40),
    masterKey: random.secret(32),
  },
  operator: null,
  clock: systemClock,
  random,
  peers: createPeers(),
  output: { write: take, flush: () => {} },
  logLevel: 'error',
  listen: { host: '127.0.0.1', port: 0 },
});
process.on('disconnect', () => void daemon.close());
process.send!({ url: daemon.url } satisfies ServiceMessage);
