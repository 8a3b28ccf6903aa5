import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '../../../src/kit/clock.ts';
import { bufferedOutput } from '../../../src/kit/output.ts';

/** Writes 20,000 numbered lines of 1 KB in 100 turns, then tells on stderr how long its event loop ever stood still. */

const output = bufferedOutput(1, systemClock, (count) => output.write(`dropped ${count}\n`));
const delays = monitorEventLoopDelay({ resolution: 5 });
delays.enable();
let line = 0;
const timer = setInterval(() => {
  for (let n = 0; n < 200; n++) output.write(`${String(line++).padStart(6, '0')} ${'x'.repeat(1016)}\n`);
  if (line < 20_000) return;
  clearInterval(timer);
  process.stderr.write(`${Math.round(delays.max / 1e6)}\n`);
}, 10);
process.on('message', () => {
  output.write('the end\n');
  output.flush();
  process.exit(0);
});
