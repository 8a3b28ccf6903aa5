import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, mkdir, opendir } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { PlatformError } from '../kit/errors/errors.ts';
import { isInside } from './inside.ts';
import { INSTALL_LIMITS } from './integrity.ts';
import { staysBehind } from './package-files.ts';

// The package format is a gzip stream. Each file is a line of JSON (`{name, size, executable}`), followed by the bytes
// of the file. The receiver verifies the digest of the unpacked folder.

const MAX_HEADER_BYTES = 8 * 1024;

interface FileHeader {
  name: string;
  size: number;
  executable: boolean;
}

/**
 * Streams the files of a folder, by default the plugin files that remote hosts need. Fails if the folder contains a link
 * or a device.
 */
export function packFolder(root: string, isLeftOut: (name: string) => boolean = staysBehind): Readable {
  return Readable.from(filesOf(root, isLeftOut)).compose(createGzip()) as unknown as Readable;
}

async function* filesOf(root: string, isLeftOut: (name: string) => boolean): AsyncGenerator<Buffer> {
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const entry of await opendir(folder)) {
      const path = join(folder, entry.name);
      const name = relative(root, path).split(sep).join('/');
      if (isLeftOut(name)) continue;
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) yield* fileOf(path, name);
      else
        throw new PlatformError(
          'VALIDATION_ERROR',
          `${name} is a link or a device, and a plugin that runs on hosts holds files only. Replace it by the file itself.`,
        );
    }
  }
}

async function* fileOf(path: string, name: string): AsyncGenerator<Buffer> {
  const { size, mode } = await lstat(path);
  const header: FileHeader = { name, size, executable: (mode & 0o111) !== 0 };
  yield Buffer.from(`${JSON.stringify(header)}\n`);
  let left = size;
  // Reads at most `size` bytes, so that a growing file cannot corrupt the next files in the stream. The host detects
  // the wrong digest of a changed file and fetches the package again.
  if (size > 0) {
    for await (const chunk of createReadStream(path, { end: size - 1 })) {
      left -= (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  }
  if (left > 0) throw new PlatformError('CONFLICT', `${name} became shorter while it was read.`);
}

/**
 * Unpacks a stream from `packFolder` into an empty folder. Throws VALIDATION_ERROR if a file would be outside the
 * folder. Throws VALIDATION_ERROR if a size limit is exceeded.
 */
export async function unpackFolder(packed: AsyncIterable<Uint8Array>, root: string): Promise<void> {
  const bytes = Readable.from(packed).compose(createGunzip()) as unknown as Readable;
  try {
    await unpack(createReader(bytes), root);
  } finally {
    // The rest of a rejected package is not read. Closing the stream signals the rejection to the sender.
    bytes.destroy();
  }
}

async function unpack(reader: ReturnType<typeof createReader>, root: string): Promise<void> {
  let files = 0;
  let total = 0;
  for (let line = await reader.line(); line !== undefined; line = await reader.line()) {
    const header = readHeader(line);
    total += header.size;
    if (
      ++files > INSTALL_LIMITS.files ||
      total > INSTALL_LIMITS.bytes ||
      header.size > INSTALL_LIMITS.fileBytes
    )
      throw refused('it exceeds the size limit of a plugin');
    const path = join(root, header.name);
    if (!isInside(resolve(root), resolve(path)) || header.name.split('/').includes('..'))
      throw refused(`${JSON.stringify(header.name.slice(0, 200))} is outside of it`);
    await mkdir(dirname(path), { recursive: true });
    const file = createWriteStream(path, { flags: 'wx', mode: header.executable ? 0o755 : 0o644 });
    await pipeline(Readable.from(reader.exactly(header.size)), file);
  }
}

function readHeader(line: string): FileHeader {
  let header: Partial<FileHeader>;
  try {
    header = JSON.parse(line) as Partial<FileHeader>;
  } catch {
    throw refused('it cannot be read');
  }
  const { name, size, executable } = header;
  const isSane =
    typeof name === 'string' &&
    name !== '' &&
    name.length <= INSTALL_LIMITS.pathChars &&
    !name.includes('\0') &&
    typeof size === 'number' &&
    Number.isSafeInteger(size) &&
    size >= 0;
  if (!isSane) throw refused('it cannot be read');
  return { name, size, executable: executable === true };
}

function createReader(stream: AsyncIterable<Buffer>) {
  const chunks = stream[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);

  async function more(): Promise<boolean> {
    const next = await chunks.next();
    if (next.done) return false;
    rest = rest.length === 0 ? next.value : Buffer.concat([rest, next.value]);
    return true;
  }
  return {
    /** Reads the next line. Returns undefined at the end of the stream. */
    async line(): Promise<string | undefined> {
      for (;;) {
        const end = rest.indexOf(10);
        if (end >= 0) {
          const line = rest.toString('utf8', 0, end);
          rest = rest.subarray(end + 1);
          return line;
        }
        if (rest.length > MAX_HEADER_BYTES) throw refused('it cannot be read');
        if (!(await more())) {
          if (rest.length > 0) throw refused('it ends in the middle');
          return undefined;
        }
      }
    },
    async *exactly(size: number): AsyncGenerator<Buffer> {
      for (let left = size; left > 0; ) {
        if (rest.length === 0 && !(await more())) throw refused('it ends in the middle');
        const piece = rest.subarray(0, left);
        rest = rest.subarray(piece.length);
        left -= piece.length;
        yield piece;
      }
    },
  };
}

function refused(why: string): PlatformError {
  return new PlatformError('VALIDATION_ERROR', `The plugin package was rejected: ${why}.`);
}
