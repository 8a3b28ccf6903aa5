import { connect } from 'node:net';
import { onTestFinished } from 'vitest';

export interface RawSocket {
  send(bytes: Buffer): void;
  /** The code of the close frame; undefined when the connection ends without one. */
  closed: Promise<number | undefined>;
}

/** A masked frame as a client sends it. `lengthBytes`: how the length is written; default: the shortest form. */
export function clientFrame(
  payload: Buffer,
  { opcode = 1, isLast = true, lengthBytes = shortest(payload.length) } = {},
): Buffer {
  const header = Buffer.alloc(2 + lengthBytes + 4);
  header[0] = (isLast ? 0x80 : 0) | opcode;
  header[1] = 0x80 | (lengthBytes === 0 ? payload.length : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) header.writeUInt16BE(payload.length, 2);
  if (lengthBytes === 8) header.writeBigUInt64BE(BigInt(payload.length), 2);
  // A mask of zeros leaves the payload as it is.
  return Buffer.concat([header, payload]);
}

function shortest(length: number): 0 | 2 | 8 {
  if (length < 126) return 0;
  return length < 65_536 ? 2 : 8;
}

/** Opens a WebSocket by hand, for frames that no library sends. `behind`: bytes in one write with the handshake. */
export function openRawSocket(
  target: { url: string },
  path: string,
  token: string,
  behind: Buffer = Buffer.alloc(0),
): Promise<RawSocket> {
  const { port, hostname } = new URL(target.url);
  const { promise: closed, resolve: settle } = Promise.withResolvers<number | undefined>();
  return new Promise((resolve, reject) => {
    const handshake = [
      `GET ${path} HTTP/1.1`,
      'host: localhost',
      `authorization: Bearer ${token}`,
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
      '\r\n',
    ].join('\r\n');
    const socket = connect(Number(port), hostname, () => {
      socket.write(Buffer.concat([Buffer.from(handshake), behind]));
    });
    onTestFinished(() => void socket.destroy());
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const end = received.indexOf('\r\n\r\n');
      if (end === -1) return;
      if (!received.toString('latin1').startsWith('HTTP/1.1 101')) reject(new Error(received.toString()));
      resolve({ send: (bytes) => void socket.write(bytes), closed });
      settleAtClose(received.subarray(end + 4));
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      settle(undefined);
      reject(new Error('closed'));
    });

    function settleAtClose(frames: Buffer): void {
      for (let at = 0; at + 2 <= frames.length; ) {
        const short = frames[at + 1]! & 0x7f;
        const start = at + 2 + (short === 126 ? 2 : short === 127 ? 8 : 0);
        if (start > frames.length) return;
        const length =
          short === 126
            ? frames.readUInt16BE(at + 2)
            : short === 127
              ? Number(frames.readBigUInt64BE(at + 2))
              : short;
        if ((frames[at]! & 0x0f) === 8 && frames.length >= start + 2) settle(frames.readUInt16BE(start));
        at = start + length;
      }
    }
  });
}
