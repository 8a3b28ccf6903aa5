/** Reason to end a WebSocket, as a close code and text. */
export interface FrameFault {
  code: number;
  reason: string;
  /** Offset of the invalid frame in the bytes of the latest call; 0 if the frame began in an earlier call. */
  at: number;
}

const PROTOCOL_ERROR = 1002;
const TOO_LARGE = 1009;
const MASK_BYTES = 4;
const MAX_HEADER_BYTES = 10;
const FIRST_CONTROL_OPCODE = 8;

/**
 * Follows the frames of a WebSocket stream by their headers, skipping payloads (RFC 6455 5.2). `maxMessageBytes` limits
 * the sum of all frames of a message.
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

  /** Whether the bytes so far end with a complete frame. Another frame may be inserted only there. */
  get atBoundary(): boolean {
    return this.#headerBytes === 0 && this.#bytesToSkip === 0;
  }

  /**
   * Reads further bytes. Returns a fault when the header of an invalid frame is complete. Must not be called after
   * that.
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

  /** Header length without the mask. Assumes 2 bytes until the length field has been read. */
  #headerLength(): number {
    if (this.#headerBytes < 2) return 2;
    const short = this.#header[1]! & 0x7f;
    return short === 126 ? 4 : short === 127 ? 10 : 2;
  }

  /**
   * Returns the payload length; undefined unless encoded in the shortest form, because parsers may treat other forms
   * differently.
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

/** Builds an unmasked close frame. Servers must not mask frames. */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  const frame = Buffer.alloc(4 + text.length);
  frame[0] = 0x88;
  frame[1] = 2 + text.length;
  frame.writeUInt16BE(code, 2);
  text.copy(frame, 4);
  return frame;
}
