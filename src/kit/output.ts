import { writeSync } from 'node:fs';
import type { Clock } from './clock.ts';

/** Where log lines go. */
export interface LineOutput {
  write(line: string): void;
  /** Writes what is gathered, synchronously: the last words of a process. */
  flush(): void;
}

const FLUSH_BYTES = 64 * 1024;
const FLUSH_MS = 50;

/**
 * Gathers lines and writes them 64 KB at a time or after 50 ms: one system call for hundreds of lines
 * costs a third of a write each. A reader that is gone (EPIPE) is not our failure: lines are dropped. One that is stuck
 * costs what it did not take within a second, and gets what comes after.
 */
export function bufferedOutput(fd: number, clock: Clock): LineOutput {
  let lines: string[] = [];
  let size = 0;
  let scheduled = false;
  let state: 'whole' | 'torn' | 'gone' = 'whole';

  function flush(): void {
    if (size === 0) return;
    const text = lines.join('');
    lines = [];
    size = 0;
    // A line that was cut off ends here, so that it does not spoil the next one.
    if (state !== 'gone') state = writeAll(fd, Buffer.from(state === 'torn' ? `\n${text}` : text));
  }
  return {
    write(line) {
      lines.push(line);
      size += line.length;
      if (size >= FLUSH_BYTES) flush();
      else if (!scheduled) {
        scheduled = true;
        clock.after(FLUSH_MS, () => {
          scheduled = false;
          flush();
        });
      }
    },
    flush,
  };
}

/** `gone`: nobody reads any more. `torn`: the pipe stayed full (EAGAIN) for a second; its reader is our supervisor. */
function writeAll(fd: number, bytes: Buffer): 'whole' | 'torn' | 'gone' {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let done = 0, retries = 0; done < bytes.length; ) {
    try {
      done += writeSync(fd, bytes, done);
      retries = 0;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return 'gone';
      if (++retries > 200) return 'torn';
      Atomics.wait(pause, 0, 0, 5);
    }
  }
  return 'whole';
}
