import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { type Extract, extract } from 'tar-stream';
import { messageOf, PlatformError } from '../../errors/errors.ts';

/**
 * Maximum total bytes of headers before one entry. Without a limit, a small compressed archive could contain megabytes
 * of headers.
 */
const MAX_HEADER_BYTES = 64 * 1024;
/** Number of bytes that are passed to the extractor at a time. The header limit is checked before each write. */
const SLICE_BYTES = 16 * 1024;

export interface TarEntry {
  /** Name as stored in the archive. The name is untrusted, and can be absolute or contain `..`. */
  name: string;
  type: 'file' | 'folder' | 'symbolic link' | 'hard link' | 'device or unknown entry';
  size: number;
  mode: number;
  /** Content of a file. It must be read before the next entry is requested. Unread content is skipped. */
  content: AsyncIterable<Buffer>;
}

const TYPES: Record<string, TarEntry['type']> = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'folder',
  symlink: 'symbolic link',
  link: 'hard link',
};

/**
 * Yields the entries of a `.tar.gz` file in order. Throws VALIDATION_ERROR if the tar data is damaged. Errors of the
 * file system and of gzip are thrown unchanged.
 */
export async function* readTarGz(path: string): AsyncGenerator<TarEntry, undefined> {
  const archive = extract();
  const stop = new AbortController();
  const limit = new HeaderLimit(archive);
  let failure: unknown;
  archive.on('error', (error) => {
    failure = error;
  });
  // After a failure, the stream of an entry reports only that the stream was destroyed. The original error is reported
  // instead.
  const explain: Explain = (error) => explained(failure ?? error);
  const feeding = pipeline(
    createReadStream(path),
    createGunzip(),
    (bytes: AsyncIterable<Buffer>) => limit.feed(bytes, stop.signal),
    { signal: stop.signal },
  ).catch((error: Error) => archive.destroy(error));
  try {
    for await (const entry of archive) {
      const { name, type, size, mode } = entry.header;
      yield {
        name,
        type: TYPES[type] ?? 'device or unknown entry',
        size,
        mode: mode & 0o777,
        content: contentOf(entry, explain),
      };
      entry.resume();
    }
  } catch (error) {
    throw explain(error);
  } finally {
    stop.abort();
    await feeding;
  }
}

type Explain = (error: unknown) => unknown;

async function* contentOf(entry: AsyncIterable<unknown>, explain: Explain): AsyncGenerator<Buffer> {
  try {
    yield* entry as AsyncIterable<Buffer>;
  } catch (error) {
    throw explain(error);
  }
}

export async function textOf({ content }: TarEntry): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

export function archiveRefused(why: string, cause?: unknown): PlatformError {
  return new PlatformError(
    'VALIDATION_ERROR',
    `The archive is refused: ${why}.`,
    cause === undefined ? {} : { cause },
  );
}

/** Limits the size of headers in an archive. The extractor would allow any number of headers of up to 4 MB each. */
class HeaderLimit {
  readonly #archive: Extract;
  #written = 0;
  /** Offset in the archive before which the next entry must begin. */
  #nextEntryBy = MAX_HEADER_BYTES;

  constructor(archive: Extract) {
    this.#archive = archive;
    archive.on('entry', ({ size }) => {
      this.#nextEntryBy = this.#written + size + MAX_HEADER_BYTES;
    });
  }

  async feed(bytes: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void> {
    for await (const chunk of bytes)
      for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
        if (this.#written > this.#nextEntryBy)
          throw archiveRefused(`more than ${MAX_HEADER_BYTES} bytes of headers come before one file`);
        const slice = chunk.subarray(at, at + SLICE_BYTES);
        this.#written += slice.length;
        if (!this.#archive.write(slice)) await once(this.#archive, 'drain', { signal });
      }
    this.#archive.end(null);
  }
}

function explained(error: unknown): unknown {
  const message = messageOf(error);
  if (message === 'Unexpected end of data') return archiveRefused('it ends in the middle of a file', error);
  if (/^Invalid (?:tar )?header/.test(message))
    return archiveRefused('it is damaged or not a tar archive', error);
  return error;
}
