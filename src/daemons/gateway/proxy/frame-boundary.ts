/** Where a stream of WebSocket frames stands. */
export interface FrameBoundary {
  /** Takes the next bytes of the stream. */
  push(bytes: Buffer): void;
  /** Whether the bytes so far end with a whole frame: only then may another frame be put in. */
  readonly atBoundary: boolean;
}

const MASK_BYTES = 4;

/** Follows frame headers and skips payloads, without looking at them (RFC 6455 5.2). */
export function createFrameBoundary(): FrameBoundary {
  const header = Buffer.alloc(10);
  let have = 0;
  let skip = 0;

  /** Bytes of the header, as far as its first two tell; 2 until they are known. */
  function headerLength(): number {
    if (have < 2) return 2;
    const short = header[1]! & 0x7f;
    return short === 126 ? 4 : short === 127 ? 10 : 2;
  }
  function payloadLength(): number {
    const short = header[1]! & 0x7f;
    if (short === 126) return header.readUInt16BE(2);
    return short === 127 ? Number(header.readBigUInt64BE(2)) : short;
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
        const masked = (header[1]! & 0x80) !== 0;
        skip = payloadLength() + (masked ? MASK_BYTES : 0);
        have = 0;
      }
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
