import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEngine, workStep } from '../support/engine.ts';

/** engine.ts <data folder> <lease in ms> [<steps>]: an engine beside others; starts a run of so many slow steps, and prints each step it runs. */
const [dataDir, leaseMs, steps = '0'] = process.argv.slice(2) as [string, string, string?];
const say = (line: string): void => void writeSync(1, `${line}\n`);
const it = await openEngine({
  dataDir,
  leaseMs: Number(leaseMs),
  onFenced: () => say('fenced'),
  kinds: [
    workStep('slow', async (stepId) => {
      say(`step ${stepId}`);
      await sleep(60);
    }),
  ],
});
await it.engine.start();
if (Number(steps) > 0) say(await it.begin(Array.from({ length: Number(steps) }, () => ({ uses: 'slow' }))));
else say('ready');
setInterval(() => {}, 1000);
