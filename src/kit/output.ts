import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Clock } from './clock.ts';

/** Where log lines go. */
export interface LineOutput {
  write(line: string): void;
  /** Writes what is gathered, waiting for its reader a second at most: the last words of a process. */
  flush(): void;
}

const FLUSH_BYTES = 64 * 1024;
const FLUSH_MS = 50;
/** How soon a pipe that was full is tried again. */
const RETRY_MS = 10;
/** What waits for a reader that is slow; beyond it lines are dropped. */
const MOST_BYTES = 4 * 1024 * 1024;
const LAST_WORDS_MS = 1000;
const EMPTY = Buffer.alloc(0);

/**
 * Gathers lines and writes them 64 KB at a time or after 50 ms: one system call for hundreds of lines costs a third of a
 * write each. A reader that is slow or stuck costs its lines, never our time: what the pipe does not take waits in memory,
 * 4 MiB at most, and `onDropped` is told how many lines came beyond that, once there is room again. One that is gone
 * (EPIPE) gets nothing more.
 */
export function bufferedOutput(
  fd: number,
  clock: Clock,
  onDropped: (count: number) => void = () => {},
): LineOutput {
  unblock(fd);
  let lines: string[] = [];
  let size = 0;
  /** The part of a block that the pipe has not taken: whole lines but for the first, which has begun. */
  let left: Buffer = EMPTY;
  let dropped = 0;
  let isGone = false;
  let isScheduled = false;

  function gather(): void {
    left = Buffer.from(lines.join(''));
    lines = [];
    size = 0;
  }
  /** False when the pipe is full. */
  function drain(): boolean {
    while (!isGone && (left.length > 0 || size > 0)) {
      if (left.length === 0) gather();
      try {
        left = left.subarray(writeSync(fd, left));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
        isGone = true;
        left = EMPTY;
      }
    }
    return true;
  }
  function tryOn(): void {
    if (!drain()) schedule(RETRY_MS);
    else if (dropped > 0) {
      const count = dropped;
      dropped = 0;
      onDropped(count);
    }
  }
  function schedule(ms: number): void {
    if (isScheduled) return;
    isScheduled = true;
    clock.after(ms, () => {
      isScheduled = false;
      tryOn();
    });
  }
  return {
    write(line) {
      if (isGone) return;
      if (left.length + size + line.length > MOST_BYTES) {
        dropped++;
        return;
      }
      lines.push(line);
      size += line.length;
      if (size >= FLUSH_BYTES && left.length === 0) tryOn();
      else schedule(FLUSH_MS);
    },
    flush() {
      const pause = new Int32Array(new SharedArrayBuffer(4));
      for (let waitedMs = 0; !drain() && waitedMs < LAST_WORDS_MS; waitedMs += RETRY_MS)
        Atomics.wait(pause, 0, 0, RETRY_MS);
    },
  };
}

/** Held for good: collected as garbage, one would close its descriptor. */
const opened: Socket[] = [];

/**
 * Makes writes to a pipe fail with EAGAIN instead of waiting: libuv does so when it opens one, and nothing else in Node
 * can. A file or a terminal, which it refuses here, takes what it is given.
 */
function unblock(fd: number): void {
  try {
    opened.push(new Socket({ fd, readable: false, writable: false }).unref());
  } catch {
    // Neither a pipe nor a socket.
  }
}
