import { createReadStream } from 'node:fs';
import { PlatformError } from '../errors.ts';
import { BLOCK, encodeHeader } from './header.ts';

const NAME_BYTES = 100;

/** A file that goes into an archive: what is on disk, or a text. */
export type TarSource = { name: string; mode: number } & ({ path: string; size: number } | { text: string });

/** An archive of these files, in this order, all of one time (epoch seconds). Fails when a file is shorter than said. */
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

/** A long name stands in an extended header (pax) before the entry's own. */
function* header(name: string, size: number, mode: number, modifiedAt: number): Generator<Buffer> {
  if (Buffer.byteLength(name) > NAME_BYTES) {
    const record = Buffer.from(paxRecord('path', name));
    yield encodeHeader({ name: 'PaxHeader', type: 'x', size: record.length, mode: 0o600 });
    yield record;
    yield padding(record.length);
  }
  yield encodeHeader({ name, type: '0', size, mode, modifiedAt });
}

/** `<length> key=value\n`, where the length counts itself. */
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
  if (left > 0) throw new PlatformError('CONFLICT', `${path} became shorter while it was read.`);
}

function padding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}
