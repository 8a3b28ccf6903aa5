import type { IncomingMessage } from 'node:http';
import { PlatformError } from '../../../kit/errors/errors.ts';

/** Joined as they come: a megabyte in chunks of one byte took 490 MB, as each holds on to what it came in. Now 30. */
const MAX_CHUNKS = 256;

/**
 * The raw bytes of a body, as sent, at most `limitBytes`. Throws PAYLOAD_TOO_LARGE as soon as the limit is known
 * to be passed, keeping nothing; rejects with VALIDATION_ERROR when the sender goes away. Its listeners stay:
 * taking them off would cost more than what they do to a body that nobody reads any more.
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let joined: Buffer[] = [];
    let size = 0;
    let settled = false;
    request.on('data', (chunk: Buffer) => {
      if (settled) return;
      size += chunk.length;
      chunks.push(chunk);
      if (chunks.length === MAX_CHUNKS) {
        joined.push(Buffer.concat(chunks));
        chunks = [];
      }
      if (size <= limitBytes) return;
      settled = true;
      chunks = [];
      joined = [];
      request.pause();
      reject(tooLarge(limitBytes));
    });
    request.on('end', () => {
      settled = true;
      resolve(
        chunks.length === 1 && chunks[0]!.length === size
          ? chunks[0]!
          : Buffer.concat([...joined, ...chunks], size),
      );
    });
    // It closes after its end too. Without a listener for them, its errors come as this alone.
    request.on('close', () => {
      if (settled) return;
      settled = true;
      reject(
        new PlatformError('VALIDATION_ERROR', 'The connection closed before the whole body had arrived.'),
      );
    });
  });
}

/** Throws PAYLOAD_TOO_LARGE for a body whose `Content-Length` is over the limit. */
export function requireDeclaredSize({ headers }: IncomingMessage, limitBytes: number): void {
  if (Number(headers['content-length']) > limitBytes) throw tooLarge(limitBytes);
}

/** Of a body that is there. Throws PAYLOAD_TOO_LARGE. */
export function requireSize(body: Buffer, limitBytes: number): Buffer {
  if (body.length > limitBytes) throw tooLarge(limitBytes);
  return body;
}

function tooLarge(limitBytes: number): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The body is larger than the ${limitBytes} bytes this webhook takes.`,
    {
      details: { maxBodyBytes: limitBytes },
    },
  );
}
