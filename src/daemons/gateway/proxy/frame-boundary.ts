/** An invalid frame, with the code and reason of the close frame to send. */
export interface FrameFault {
  code: number;
  reason: string;
  /** Offset of the invalid frame in the bytes passed to `push`. 0 if the frame began in an earlier call. */
  at: number;
}

const PROTOCOL_ERROR = 1002;
const TOO_LARGE = 1009;
const MASK_BYTES = 4;
const MAX_HEADER_BYTES = 10;
const FIRST_CONTROL_OPCODE = 8;

/**
 * Finds the frame boundaries of a WebSocket stream (RFC 6455 5.2). Reads only the frame headers and skips the payloads.
 * `maxMessageBytes` limits the total payload size of all frames of a message.
 */
export class FrameBoundary {
  readonly #maxMessageBytes: number;
  readonly #header = Buffer.alloc(MAX_HEADER_BYTES);
  #headerBytes = 0;
  #bytesToSkip = 0;
  #messageBytes = 0;

  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes;
  }

  /**
   * Returns whether the last frame is complete. The gateway can insert a frame into the stream only at a frame
   * boundary.
   */
  get atBoundary(): boolean {
    return this.#headerBytes === 0 && this.#bytesToSkip === 0;
  }

  /**
   * Reads the next bytes of the stream. Returns a fault for an invalid frame header. `push` must not be called after a
   * fault.
   */
  push(bytes: Buffer): FrameFault | undefined {
    for (let at = 0; at < bytes.length; ) {
      if (this.#bytesToSkip > 0) {
        const step = Math.min(this.#bytesToSkip, bytes.length - at);
        this.#bytesToSkip -= step;
        at += step;
        continue;
      }
      this.#header[this.#headerBytes++] = bytes[at++]!;
      if (this.#headerBytes < this.#headerLength()) continue;
      const length = this.#payloadLength();
      const fault = this.#faultOf(length);
      if (fault) return { ...fault, at: Math.max(0, at - this.#headerBytes) };
      const isMasked = (this.#header[1]! & 0x80) !== 0;
      this.#bytesToSkip = length! + (isMasked ? MASK_BYTES : 0);
      this.#headerBytes = 0;
    }
    return undefined;
  }

  /** Returns the length of the frame header without the mask. Returns 2 until the first two bytes have been read. */
  #headerLength(): number {
    if (this.#headerBytes < 2) return 2;
    const short = this.#header[1]! & 0x7f;
    return short === 126 ? 4 : short === 127 ? 10 : 2;
  }

  /**
   * Returns the payload length. Returns undefined if the length is not encoded in the shortest form, because
   * implementations might interpret longer forms differently.
   */
  #payloadLength(): number | undefined {
    const short = this.#header[1]! & 0x7f;
    if (short < 126) return short;
    if (short === 126) {
      const length = this.#header.readUInt16BE(2);
      return length < 126 ? undefined : length;
    }
    const length = this.#header.readBigUInt64BE(2);
    return length < 65_536n || length >> 63n === 1n ? undefined : Number(length);
  }

  #faultOf(length: number | undefined): Omit<FrameFault, 'at'> | undefined {
    if (length === undefined) return { code: PROTOCOL_ERROR, reason: 'frame length not in shortest form' };
    const opcode = this.#header[0]! & 0x0f;
    if (opcode >= FIRST_CONTROL_OPCODE) return undefined;
    this.#messageBytes = opcode === 0 ? this.#messageBytes + length : length;
    if (this.#messageBytes <= this.#maxMessageBytes) return undefined;
    return { code: TOO_LARGE, reason: `message larger than ${this.#maxMessageBytes} bytes` };
  }
}

/** Builds a close frame without a mask, because servers must not mask frames (RFC 6455 5.1). */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  const frame = Buffer.alloc(4 + text.length);
  frame[0] = 0x88;
  frame[1] = 2 + text.length;
  frame.writeUInt16BE(code, 2);
  text.copy(frame, 4);
  return frame;
}
