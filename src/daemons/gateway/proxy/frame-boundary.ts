/** Why a stream of frames must end: a WebSocket close code and its reason. */
export interface FrameFault {
  code: number;
  reason: string;
  /** Where the refused frame begins in the latest bytes; 0 also where it began in earlier ones. */
  at: number;
}

/** Where a stream of WebSocket frames stands. */
export interface FrameBoundary {
  /** Takes the next bytes of the stream. Returns the fault of a frame as soon as its header is known; nothing may follow. */
  push(bytes: Buffer): FrameFault | undefined;
  /** Whether the bytes so far end with a whole frame: only then may another frame be put in. */
  readonly atBoundary: boolean;
}

const PROTOCOL_ERROR = 1002;
const TOO_LARGE = 1009;
const MASK_BYTES = 4;
const FIRST_CONTROL_OPCODE = 8;

/** Follows frame headers and skips payloads (RFC 6455 5.2). A message over `maxMessageBytes`, all its frames together, is a fault. */
export function createFrameBoundary(maxMessageBytes: number): FrameBoundary {
  const header = Buffer.alloc(10);
  let have = 0;
  let skip = 0;
  let messageBytes = 0;

  /** Bytes of the header, as far as its first two tell; 2 until they are known. */
  function headerLength(): number {
    if (have < 2) return 2;
    const short = header[1]! & 0x7f;
    return short === 126 ? 4 : short === 127 ? 10 : 2;
  }
  /** Undefined: not in the shortest form, which two readers may take in two ways. */
  function payloadLength(): number | undefined {
    const short = header[1]! & 0x7f;
    if (short < 126) return short;
    if (short === 126) {
      const length = header.readUInt16BE(2);
      return length < 126 ? undefined : length;
    }
    const length = header.readBigUInt64BE(2);
    return length < 65_536n || length >> 63n === 1n ? undefined : Number(length);
  }
  function faultOf(length: number | undefined): Omit<FrameFault, 'at'> | undefined {
    if (length === undefined) return { code: PROTOCOL_ERROR, reason: 'frame length not in shortest form' };
    const opcode = header[0]! & 0x0f;
    if (opcode >= FIRST_CONTROL_OPCODE) return undefined;
    messageBytes = opcode === 0 ? messageBytes + length : length;
    if (messageBytes <= maxMessageBytes) return undefined;
    return { code: TOO_LARGE, reason: `message larger than ${maxMessageBytes} bytes` };
  }
  return {
    push(bytes) {
      for (let at = 0; at < bytes.length; ) {
        if (skip > 0) {
          const step = Math.min(skip, bytes.length - at);
          skip -= step;
          at += step;
          continue;
        }
        header[have++] = bytes[at++]!;
        if (have < headerLength()) continue;
        const length = payloadLength();
        const fault = faultOf(length);
        if (fault) return { ...fault, at: Math.max(0, at - have) };
        const masked = (header[1]! & 0x80) !== 0;
        skip = length! + (masked ? MASK_BYTES : 0);
        have = 0;
      }
      return undefined;
    },
    get atBoundary() {
      return have === 0 && skip === 0;
    },
  };
}

/** A close frame as a server sends it: unmasked. */
export function closeFrame(code: number, reason: string): Buffer {
  const text = Buffer.from(reason);
  const frame = Buffer.alloc(4 + text.length);
  frame[0] = 0x88;
  frame[1] = 2 + text.length;
  frame.writeUInt16BE(code, 2);
  text.copy(frame, 4);
  return frame;
}
