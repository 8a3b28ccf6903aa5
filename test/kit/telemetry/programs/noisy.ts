import { BufferedOutput } from '../../../../src/kit/telemetry/output.ts';
import { systemClock } from '../../../../src/kit/time/clock.ts';

/** Writes 20,000 numbered lines of 1 KB in 100 turns, then tells on stderr how many milliseconds its calls took. */

const output = new BufferedOutput(1, systemClock, (count) => output.write(`dropped ${count}\n`));
let line = 0;
let tookMs = 0;
const timer = setInterval(() => {
  const startedAt = performance.now();
  for (let n = 0; n < 200; n++) output.write(`${String(line++).padStart(6, '0')} ${'x'.repeat(1016)}\n`);
  tookMs += performance.now() - startedAt;
  if (line < 20_000) return;
  clearInterval(timer);
  process.stderr.write(`${Math.round(tookMs)}\n`);
}, 10);
process.on('message', () => {
  output.write('the end\n');
  output.flush();
  process.exit(0);
});
