import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { type Pack, pack } from 'tar-stream';
import { PlatformError } from '../../errors/errors.ts';

/** A file to archive, from disk or from text. */
export type TarSource = { name: string; mode: number } & ({ path: string; size: number } | { text: string });

const READ_BYTES = 256 * 1024;

/**
 * Archives files in the given order. Throws CONFLICT if a file is shorter than its `size`, and omits bytes beyond
 * `size`. `modifiedAt` is in epoch seconds.
 */
export async function* tarOf(
  sources: AsyncIterable<TarSource> | Iterable<TarSource>,
  modifiedAt: number,
): AsyncGenerator<Buffer> {
  const archive = pack();
  const stop = new AbortController();
  const packing = packAll(archive, sources, new Date(modifiedAt * 1000), stop.signal).catch((error: Error) =>
    archive.destroy(error),
  );
  try {
    yield* archive as AsyncIterable<Buffer>;
  } finally {
    stop.abort();
    await packing;
  }
}

async function packAll(
  archive: Pack,
  sources: AsyncIterable<TarSource> | Iterable<TarSource>,
  mtime: Date,
  signal: AbortSignal,
): Promise<void> {
  for await (const source of sources) {
    const { name, mode } = source;
    if ('text' in source) archive.entry({ name, mode, mtime }, source.text);
    else if (source.size === 0) archive.entry({ name, mode, mtime }, '');
    else await copyFile(source, archive.entry({ name, mode, mtime, size: source.size }), signal);
  }
  archive.finalize();
}

async function copyFile(
  { path, size }: { path: string; size: number },
  entry: ReturnType<Pack['entry']>,
  signal: AbortSignal,
): Promise<void> {
  let left = size;
  for await (const chunk of createReadStream(path, { end: size - 1, highWaterMark: READ_BYTES, signal })) {
    left -= (chunk as Buffer).length;
    if (!entry.write(chunk)) await once(entry, 'drain', { signal });
  }
  if (left > 0) throw new PlatformError('CONFLICT', `${path} shrank while it was being archived. Try again.`);
  entry.end(null);
}
