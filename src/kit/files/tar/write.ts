import { createReadStream } from 'node:fs';
import { PlatformError } from '../../errors/errors.ts';
import { BLOCK, encodeHeader } from './header.ts';

const MAX_NAME_BYTES = 100;

/** A file to archive, from disk or from text. */
export type TarSource = { name: string; mode: number } & ({ path: string; size: number } | { text: string });

/** Archives files in this order with one modification time (epoch seconds). Fails if a file is shorter than its `size`. */
export async function* tarOf(
  sources: AsyncIterable<TarSource> | Iterable<TarSource>,
  modifiedAt: number,
): AsyncGenerator<Buffer> {
  for await (const source of sources) {
    const text = 'text' in source ? Buffer.from(source.text) : undefined;
    const size = text?.length ?? ('size' in source ? source.size : 0);
    yield* header(source.name, size, source.mode, modifiedAt);
    if (text) yield text;
    else if ('path' in source) yield* content(source.path, size);
    yield padding(size);
  }
  yield Buffer.alloc(2 * BLOCK);
}

/** Puts a long name into an extended header (pax) before the entry's own. */
function* header(name: string, size: number, mode: number, modifiedAt: number): Generator<Buffer> {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) {
    const record = Buffer.from(paxRecord('path', name));
    yield encodeHeader({ name: 'PaxHeader', type: 'x', size: record.length, mode: 0o600 });
    yield record;
    yield padding(record.length);
  }
  yield encodeHeader({ name, type: '0', size, mode, modifiedAt });
}

/** Formats `<length> key=value\n`, where the length includes itself. */
function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + String(bytes).length;
  if (String(length).length > String(bytes).length) length = bytes + String(length).length;
  return `${length}${rest}`;
}

async function* content(path: string, size: number): AsyncGenerator<Buffer> {
  if (size === 0) return;
  let left = size;
  for await (const chunk of createReadStream(path, { end: size - 1, highWaterMark: 256 * 1024 })) {
    left -= (chunk as Buffer).length;
    yield chunk as Buffer;
  }
  if (left > 0) throw new PlatformError('CONFLICT', `${path} shrank while it was being archived. Try again.`);
}

function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}
