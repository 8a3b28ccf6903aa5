import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Clock } from '../time/clock.ts';

export interface LineOutput {
  write(line: string): void;
  /** Writes buffered lines, and waits at most a second for the reader. Called when the process exits. */
  flush(): void;
}

const FLUSH_BYTES = 64 * 1024;
const FLUSH_MS = 50;
const RETRY_MS = 10;
/** Maximum bytes buffered for a slow reader. Further lines are dropped. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
const MAX_FLUSH_WAIT_MS = 1000;
const EMPTY = Buffer.alloc(0);

/**
 * Buffers lines and writes them in blocks. A slow reader never blocks the process. While 4 MiB are buffered, further
 * lines are dropped. `onDropped` later receives the number of dropped lines.
 */
export class BufferedOutput implements LineOutput {
  readonly #fd: number;
  readonly #clock: Clock;
  readonly #onDropped: (count: number) => void;
  #buffered: string[] = [];
  #bufferedBytes = 0;
  /** Bytes of a block that the pipe has not accepted yet. The first byte can be in the middle of a line. */
  #pending: Buffer = EMPTY;
  #dropped = 0;
  #isClosed = false;
  #isScheduled = false;

  constructor(fd: number, clock: Clock, onDropped: (count: number) => void = () => {}) {
    setNonBlocking(fd);
    this.#fd = fd;
    this.#clock = clock;
    this.#onDropped = onDropped;
  }

  write(line: string): void {
    if (this.#isClosed) return;
    if (this.#pending.length + this.#bufferedBytes + line.length > MAX_BUFFERED_BYTES) {
      this.#dropped++;
      return;
    }
    this.#buffered.push(line);
    this.#bufferedBytes += line.length;
    if (this.#bufferedBytes >= FLUSH_BYTES && this.#pending.length === 0) this.#drainOrRetry();
    else this.#schedule(FLUSH_MS);
  }

  flush(): void {
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (let waitedMs = 0; !this.#drain() && waitedMs < MAX_FLUSH_WAIT_MS; waitedMs += RETRY_MS)
      Atomics.wait(pause, 0, 0, RETRY_MS);
  }

  #packBlock(): void {
    this.#pending = Buffer.from(this.#buffered.join(''));
    this.#buffered = [];
    this.#bufferedBytes = 0;
  }

  /** Writes the buffered lines. Returns false if the pipe is full. */
  #drain(): boolean {
    while (!this.#isClosed && (this.#pending.length > 0 || this.#bufferedBytes > 0)) {
      if (this.#pending.length === 0) this.#packBlock();
      try {
        this.#pending = this.#pending.subarray(writeSync(this.#fd, this.#pending));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
        this.#isClosed = true;
        this.#pending = EMPTY;
      }
    }
    return true;
  }

  #drainOrRetry(): void {
    if (!this.#drain()) this.#schedule(RETRY_MS);
    else if (this.#dropped > 0) {
      const count = this.#dropped;
      this.#dropped = 0;
      this.#onDropped(count);
    }
  }

  #schedule(ms: number): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#clock.after(ms, () => {
      this.#isScheduled = false;
      this.#drainOrRetry();
    });
  }
}

/** References to the sockets of `setNonBlocking`, because garbage collection of a socket would close its descriptor. */
const openSockets: Socket[] = [];

/**
 * Makes writes to a full pipe fail with EAGAIN instead of blocking. Opening the pipe as a socket sets this mode. Writes
 * to files and terminals keep blocking.
 */
function setNonBlocking(fd: number): void {
  try {
    openSockets.push(new Socket({ fd, readable: false, writable: false }).unref());
  } catch {
    // The descriptor is neither a pipe nor a socket, so writes keep blocking.
  }
}
