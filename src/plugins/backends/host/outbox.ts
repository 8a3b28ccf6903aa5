import { HOST_SOCKET, type PartFrame } from '../../../contracts/index.ts';

/**
 * Maximum bytes buffered in the socket. A higher limit would delay short frames, and a lower limit could leave the
 * socket idle.
 */
const WINDOW_BYTES = 256 * 1024;

export interface OutboxWire {
  /** Calls `onSent` once the text was written to the socket, or once the write has failed. */
  send(text: string, onSent: () => void): void;
  /** Bytes passed to the socket but not yet flushed. */
  readonly bufferedBytes: number;
}

/**
 * A frame that is sent in parts. `followers` holds later frames of the same execution, which are sent after all parts.
 */
interface LongFrame {
  number: number;
  executionId: string | undefined;
  text: string;
  sentChars: number;
  followers: string[];
}

/**
 * Send queue of one socket. The queue splits long frames, so that short frames of other executions can overtake them.
 */
export class Outbox {
  readonly #wire: OutboxWire;
  readonly #maxBytes: number;
  #short: string[] = [];
  #long: LongFrame[] = [];
  /** Latest long frame of each execution that has unsent parts. */
  readonly #latest = new Map<string, LongFrame>();
  #waitingChars = 0;
  #numbered = 0;

  constructor(wire: OutboxWire, maxBytes: number) {
    this.#wire = wire;
    this.#maxBytes = maxBytes;
  }

  /** Queues a frame. Returns false if the frame exceeds the size limit. Frames of one execution keep their order. */
  send(frame: object, executionId?: string): boolean {
    const text = JSON.stringify(frame);
    const isLong = text.length > HOST_SOCKET.partChars;
    if (isLong && Buffer.byteLength(text) > this.#maxBytes) return false;
    const before = executionId === undefined ? undefined : this.#latest.get(executionId);
    if (!isLong && !before && this.#short.length === 0 && this.#wire.bufferedBytes < WINDOW_BYTES) {
      this.#wire.send(text, () => this.#pump());
      return true;
    }
    this.#waitingChars += text.length;
    if (isLong) this.#addLong(text, executionId);
    else if (before) before.followers.push(text);
    else this.#short.push(text);
    this.#pump();
    return true;
  }

  /** Size of unsent frames: bytes in the buffer of the socket plus characters in this queue. */
  get backlog(): number {
    return this.#waitingChars + this.#wire.bufferedBytes;
  }

  /** Discards the unsent long frames of an execution, and the frames that wait for them. */
  withdraw(executionId: string): void {
    if (!this.#latest.delete(executionId)) return;
    for (const frame of this.#long.filter((other) => other.executionId === executionId)) {
      this.#waitingChars -= frame.text.length - frame.sentChars;
      for (const text of frame.followers) this.#waitingChars -= text.length;
      if (frame.sentChars > 0)
        this.#wire.send(JSON.stringify({ type: 'drop', frame: frame.number }), () => this.#pump());
    }
    this.#long = this.#long.filter((other) => other.executionId !== executionId);
  }

  /** Discards all unsent frames. */
  close(): void {
    this.#short = [];
    this.#long = [];
    this.#latest.clear();
    this.#waitingChars = 0;
  }

  #addLong(text: string, executionId: string | undefined): void {
    const frame: LongFrame = { number: this.#numbered++, executionId, text, sentChars: 0, followers: [] };
    this.#long.push(frame);
    if (executionId !== undefined) this.#latest.set(executionId, frame);
  }

  #pump(): void {
    while (this.#wire.bufferedBytes < WINDOW_BYTES) {
      const text = this.#short.shift();
      if (text !== undefined) {
        this.#waitingChars -= text.length;
        this.#wire.send(text, () => this.#pump());
      } else if (this.#long[0]) this.#sendPart(this.#long[0]);
      else return;
    }
  }

  #sendPart(frame: LongFrame): void {
    const { number, executionId, text, sentChars } = frame;
    const slice = text.slice(sentChars, sentChars + HOST_SOCKET.partChars);
    frame.sentChars += slice.length;
    this.#waitingChars -= slice.length;
    const last = frame.sentChars === text.length;
    const index = sentChars / HOST_SOCKET.partChars;
    if (last) this.#finish(frame);
    const part: PartFrame = { type: 'part', frame: number, index, last, executionId, text: slice };
    this.#wire.send(JSON.stringify(part), () => this.#pump());
  }

  #finish(frame: LongFrame): void {
    const { executionId, followers } = frame;
    this.#long.shift();
    this.#short = followers.concat(this.#short);
    if (executionId !== undefined && this.#latest.get(executionId) === frame)
      this.#latest.delete(executionId);
  }
}
