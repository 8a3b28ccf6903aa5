import { writeSync } from 'node:fs';

/** Past the kernel's pipe a line survives our death; in a stream's buffer it would not. */
export function print(line: string): void {
  for (;;) {
    try {
      writeSync(1, line);
      return;
    } catch (error) {
      // The pipe is full: its reader is slower than we are.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
