import { HOST_SOCKET, type PartFrame } from '../../../contracts/index.ts';

/**
 * Maximum bytes buffered in the socket: enough to keep it busy, few enough that short frames do not wait
 * long.
 */
const WINDOW_BYTES = 256 * 1024;

/** Sending side of a socket. */
export interface OutboxWire {
  /** Calls back when the text was flushed to the kernel, or never will be. */
  send(text: string, onSent: () => void): void;
  /** Bytes sent but not yet flushed. */
  readonly bufferedBytes: number;
}

export interface Outbox {
  /** Size of unsent frames: bytes in the socket's buffer plus characters in ours. */
  readonly backlog: number;
  /**
   * Sends a frame at the socket's pace, in parts if it is long. Returns false when it is too large. Frames of
   * one execution keep their order; short frames of others overtake long ones.
   */
  send(frame: object, executionId?: string): boolean;
  /** Discards unsent frames of that execution. */
  withdraw(executionId: string): void;
  /** Discards everything. */
  close(): void;
}

/** A frame sent in parts, and the later frames of its execution. */
interface LongFrame {
  number: number;
  executionId: string | undefined;
  text: string;
  sentChars: number;
  followers: string[];
}

/** Orders and paces the frames of one socket, to bound the memory of both sides. */
export function createOutbox(wire: OutboxWire, maxBytes: number): Outbox {
  let short: string[] = [];
  let long: LongFrame[] = [];
  /** Latest long frame per execution. */
  const latest = new Map<string, LongFrame>();
  let waitingChars = 0;
  let numbered = 0;

  function send(frame: object, executionId?: string): boolean {
    const text = JSON.stringify(frame);
    const isLong = text.length > HOST_SOCKET.partChars;
    if (isLong && Buffer.byteLength(text) > maxBytes) return false;
    const before = executionId === undefined ? undefined : latest.get(executionId);
    if (!isLong && !before && short.length === 0 && wire.bufferedBytes < WINDOW_BYTES) {
      wire.send(text, pump);
      return true;
    }
    waitingChars += text.length;
    if (isLong) addLong(text, executionId);
    else if (before) before.followers.push(text);
    else short.push(text);
    pump();
    return true;
  }

  function addLong(text: string, executionId: string | undefined): void {
    const frame: LongFrame = { number: numbered++, executionId, text, sentChars: 0, followers: [] };
    long.push(frame);
    if (executionId !== undefined) latest.set(executionId, frame);
  }

  function pump(): void {
    while (wire.bufferedBytes < WINDOW_BYTES) {
      const text = short.shift();
      if (text !== undefined) {
        waitingChars -= text.length;
        wire.send(text, pump);
      } else if (long[0]) sendPart(long[0]);
      else return;
    }
  }

  function sendPart(frame: LongFrame): void {
    const { number, executionId, text, sentChars } = frame;
    const slice = text.slice(sentChars, sentChars + HOST_SOCKET.partChars);
    frame.sentChars += slice.length;
    waitingChars -= slice.length;
    const last = frame.sentChars === text.length;
    const index = sentChars / HOST_SOCKET.partChars;
    if (last) finish(frame);
    const part: PartFrame = { type: 'part', frame: number, index, last, executionId, text: slice };
    wire.send(JSON.stringify(part), pump);
  }

  function finish(frame: LongFrame): void {
    const { executionId, followers } = frame;
    long.shift();
    short = followers.concat(short);
    if (executionId !== undefined && latest.get(executionId) === frame) latest.delete(executionId);
  }

  return {
    get backlog() {
      return waitingChars + wire.bufferedBytes;
    },
    send,
    withdraw(executionId) {
      if (!latest.delete(executionId)) return;
      for (const frame of long.filter((other) => other.executionId === executionId)) {
        waitingChars -= frame.text.length - frame.sentChars;
        for (const text of frame.followers) waitingChars -= text.length;
        if (frame.sentChars > 0) wire.send(JSON.stringify({ type: 'drop', frame: frame.number }), pump);
      }
      long = long.filter((other) => other.executionId !== executionId);
    },
    close() {
      short = [];
      long = [];
      latest.clear();
      waitingChars = 0;
    },
  };
}
