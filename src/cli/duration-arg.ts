import { durationMs } from '../contracts/duration-text.ts';
import { UsageError } from './parse-args.ts';

/** Returns the milliseconds of a duration such as `90m`, `2h` or `7d`. Throws UsageError for another text. */
export function durationArg(text: string): number {
  const ms = durationMs(text);
  if (ms) return ms;
  throw new UsageError(`"${text}" is not a duration.`, {
    hint: 'Use seconds, minutes, hours or days: 30m, 2h, 7d',
  });
}
