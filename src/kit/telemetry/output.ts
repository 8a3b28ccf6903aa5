import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Clock } from '../time/clock.ts';

/** Destination of log lines. */
export interface LineOutput {
  write(line: string): void;
  /** Writes buffered lines, waiting at most a second for the reader. For process exit. */
  flush(): void;
}

const FLUSH_BYTES = 64 * 1024;
const FLUSH_MS = 50;
/** Delay before retrying a full pipe. */
const RETRY_MS = 10;
/** Max bytes buffered for a slow reader; further lines are dropped. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
const MAX_FLUSH_WAIT_MS = 1000;
const EMPTY = Buffer.alloc(0);

/**
 * Buffers lines and writes 64 KB at a time or after 50 ms. Never blocks on a slow reader: lines beyond 4 MiB are dropped,
 * and `onDropped` gets their count once the pipe has room. After EPIPE all lines are discarded.
 */
export function bufferedOutput(
  fd: number,
  clock: Clock,
  onDropped: (count: number) => void = () => {},
): LineOutput {
  setNonBlocking(fd);
  let buffered: string[] = [];
  let bufferedBytes = 0;
  /** The rest of a block that the pipe has not accepted; its first line may be partly written. */
  let pending: Buffer = EMPTY;
  let dropped = 0;
  let isClosed = false;
  let isScheduled = false;

  function packBlock(): void {
    pending = Buffer.from(buffered.join(''));
    buffered = [];
    bufferedBytes = 0;
  }
  /** Returns false if the pipe is full. */
  function drain(): boolean {
    while (!isClosed && (pending.length > 0 || bufferedBytes > 0)) {
      if (pending.length === 0) packBlock();
      try {
        pending = pending.subarray(writeSync(fd, pending));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
        isClosed = true;
        pending = EMPTY;
      }
    }
    return true;
  }
  function drainOrRetry(): void {
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
      drainOrRetry();
    });
  }
  return {
    write(line) {
      if (isClosed) return;
      if (pending.length + bufferedBytes + line.length > MAX_BUFFERED_BYTES) {
        dropped++;
        return;
      }
      buffered.push(line);
      bufferedBytes += line.length;
      if (bufferedBytes >= FLUSH_BYTES && pending.length === 0) drainOrRetry();
      else schedule(FLUSH_MS);
    },
    flush() {
      const pause = new Int32Array(new SharedArrayBuffer(4));
      for (let waitedMs = 0; !drain() && waitedMs < MAX_FLUSH_WAIT_MS; waitedMs += RETRY_MS)
        Atomics.wait(pause, 0, 0, RETRY_MS);
    },
  };
}

/** Keeps sockets referenced: garbage collection would close their descriptors. */
const openSockets: Socket[] = [];

/**
 * Makes writes to a full pipe fail with EAGAIN instead of blocking. Only libuv can set this, by opening the pipe as a
 * socket. Files and terminals are rejected here and keep blocking writes.
 */
function setNonBlocking(fd: number): void {
  try {
    openSockets.push(new Socket({ fd, readable: false, writable: false }).unref());
  } catch {
    // Neither a pipe nor a socket.
  }
}
