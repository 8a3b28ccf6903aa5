import type { IncomingMessage } from 'node:http';
import type { MaybePromise } from '../../../kit/data/maybe-promise.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';

/**
 * Number of body chunks that are copied together into one buffer. Without copies, each chunk keeps its read buffer, and
 * 1 MB sent byte by byte takes 490 MB.
 */
const MAX_CHUNKS = 256;
const EMPTY = Buffer.alloc(0);

/**
 * Returns the raw body, synchronously if the body has already arrived. Fails with PAYLOAD_TOO_LARGE if the body exceeds
 * `limitBytes`. Fails with VALIDATION_ERROR if the sender disconnects.
 */
export function readBody(request: IncomingMessage, limitBytes: number): MaybePromise<Buffer> {
  if (request.complete) return requireSize(readArrived(request), limitBytes);
  if (request.destroyed) throw disconnected();
  return readStream(request, limitBytes);
}

/**
 * Returns a body that has arrived completely. Repeats `read()` until no chunk is left, because each call can return a
 * single chunk.
 */
function readArrived(request: IncomingMessage): Buffer {
  const first = (request.read() as Buffer | null) ?? EMPTY;
  let next = request.read() as Buffer | null;
  if (next === null) return first;
  const chunks = [first];
  for (; next !== null; next = request.read() as Buffer | null) chunks.push(next);
  return Buffer.concat(chunks);
}

/**
 * Reads a body that has not arrived completely. The listeners stay registered afterwards, because removing listeners
 * costs more time than keeping them.
 */
function readStream(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
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
    // After a complete body, `end` is emitted before `close`. If the connection fails, only `close` is emitted.
    request.on('close', () => {
      if (settled) return;
      settled = true;
      reject(disconnected());
    });
  });
}

export function requireDeclaredSize({ headers }: IncomingMessage, limitBytes: number): void {
  if (Number(headers['content-length']) > limitBytes) throw tooLarge(limitBytes);
}

function requireSize(body: Buffer, limitBytes: number): Buffer {
  if (body.length > limitBytes) throw tooLarge(limitBytes);
  return body;
}

function tooLarge(limitBytes: number): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The body is larger than the ${limitBytes} bytes this webhook takes.`,
    { details: { maxBodyBytes: limitBytes } },
  );
}

function disconnected(): PlatformError {
  return new PlatformError('VALIDATION_ERROR', 'The connection closed before the whole body had arrived.');
}
