import { createReadStream } from 'node:fs';
import { chmod, mkdir, open } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { createGunzip } from 'node:zlib';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import { INSTALL_LIMITS, isInside } from '../../../plugins/index.ts';

const BLOCK = 512;
/** Of extended headers: names are at most a kilobyte, so this holds many. */
const MAX_HEADER_BYTES = 64 * 1024;

interface Entry {
  name: string;
  type: string;
  size: number;
  executable: boolean;
}

/**
 * Unpacks an npm archive into `folder`, without its first path part (`package/`). It is untrusted: anything but
 * plain files and folders, names that lead out, and more or larger files than INSTALL_LIMITS allow are refused with
 * VALIDATION_ERROR. Files of `skip` are left out.
 */
export async function unpackTarball(
  archive: string,
  folder: string,
  skip: ReadonlySet<string>,
): Promise<void> {
  const reader = createBlockReader(createReadStream(archive).pipe(createGunzip()));
  const seen = { files: 0, bytes: 0 };
  try {
    for (let entry = await nextEntry(reader); entry; entry = await nextEntry(reader)) {
      await unpackEntry(entry, reader, folder, skip, seen);
    }
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    throw refused(`it cannot be read: ${messageOf(error)}`, error);
  } finally {
    reader.close();
  }
}

async function unpackEntry(
  { name, type, size, executable }: Entry,
  reader: BlockReader,
  folder: string,
  skip: ReadonlySet<string>,
  seen: { files: number; bytes: number },
): Promise<void> {
  if (type !== 'file' && type !== 'folder')
    throw refused(`${quoted(name)} is a ${type}; only files are taken`);
  const inner = safeName(name);
  seen.bytes += size;
  if (++seen.files > INSTALL_LIMITS.files) throw refused(`it holds more than ${INSTALL_LIMITS.files} files`);
  if (size > INSTALL_LIMITS.fileBytes || seen.bytes > INSTALL_LIMITS.bytes) {
    throw refused(`it unpacks to more than ${INSTALL_LIMITS.bytes} bytes`);
  }
  const target = join(folder, inner);
  if (!isInside(resolve(folder), resolve(target))) throw refused(`${quoted(name)} leads out of the archive`);
  if (type === 'folder' || inner === '' || skip.has(inner)) return reader.skip(size);
  await mkdir(dirname(target), { recursive: true });
  // `wx`: a second entry of one name would replace what was checked, or write through what came before.
  const file = await open(target, 'wx', 0o644);
  try {
    await reader.copy(size, (chunk) => file.writeFile(chunk));
  } finally {
    await file.close();
  }
  if (executable) await chmod(target, 0o755);
}

/** The path inside the package. Throws for names that could lead elsewhere on any system. */
function safeName(name: string): string {
  if (name.length > INSTALL_LIMITS.pathChars) throw refused('one of its names is too long');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  const isUnsafe = name.startsWith('/') || /[\0\\]/.test(name) || /^[A-Za-z]:/.test(name);
  if (isUnsafe || parts.includes('..')) throw refused(`${quoted(name)} leads out of the archive`);
  return parts.slice(1).join('/');
}

/** The next file or folder; extended headers (long names) are read on the way. Undefined at the end. */
async function nextEntry(reader: BlockReader): Promise<Entry | undefined> {
  let longName: string | undefined;
  for (;;) {
    const header = await reader.block();
    if (!header || header.every((byte) => byte === 0)) return undefined;
    verifyChecksum(header);
    const size = octal(header, 124, 12);
    const flag = String.fromCharCode(header[156] ?? 0);
    if (flag === 'x' || flag === 'g' || flag === 'L') {
      if (size > MAX_HEADER_BYTES) throw refused('one of its headers is too large');
      const text = (await reader.bytes(size)).toString('utf8');
      if (flag === 'L') longName = text.replace(/\0.*$/s, '');
      else if (flag === 'x') longName = paxPath(text) ?? longName;
      continue;
    }
    const executable = (octal(header, 100, 8) & 0o111) !== 0;
    return { name: longName ?? ustarName(header), type: typeOf(flag), size, executable };
  }
}

function typeOf(flag: string): string {
  if (flag === '0' || flag === '\0' || flag === '7') return 'file';
  if (flag === '5') return 'folder';
  if (flag === '2') return 'symbolic link';
  if (flag === '1') return 'hard link';
  return 'device or unknown entry';
}

/** `<length> path=<value>\n` among the records of a pax header. */
function paxPath(text: string): string | undefined {
  return /(?:^|\n)\d+ path=([^\n]*)\n/.exec(text)?.[1];
}

function ustarName(header: Buffer): string {
  const name = text(header, 0, 100);
  const prefix = text(header, 257, 5) === 'ustar' ? text(header, 345, 155) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

function text(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.subarray(0, end === -1 ? length : end).toString('utf8');
}

function octal(header: Buffer, start: number, length: number): number {
  const digits = text(header, start, length).trim();
  if (!/^[0-7]*$/.test(digits)) throw refused('one of its headers is malformed');
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

function verifyChecksum(header: Buffer): void {
  let sum = 0;
  for (const [index, byte] of header.entries()) sum += index >= 148 && index < 156 ? 32 : byte;
  if (sum !== octal(header, 148, 8)) throw refused('it is damaged, or no tar archive');
}

interface BlockReader {
  /** One block; undefined at the end. */
  block(): Promise<Buffer | undefined>;
  bytes(size: number): Promise<Buffer>;
  copy(size: number, write: (chunk: Buffer) => Promise<void>): Promise<void>;
  skip(size: number): Promise<void>;
  close(): void;
}

/** Reads a stream in exact amounts; contents are padded to whole blocks. */
function createBlockReader(stream: AsyncIterable<Buffer> & { destroy(): void }): BlockReader {
  const chunks = stream[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);

  /** At most `limit` bytes, as they come; empty at the end. */
  async function some(limit: number): Promise<Buffer> {
    while (rest.length === 0) {
      const next = await chunks.next();
      if (next.done) return Buffer.alloc(0);
      rest = next.value;
    }
    const taken = rest.subarray(0, limit);
    rest = rest.subarray(taken.length);
    return taken;
  }

  async function exactly(size: number, take: (chunk: Buffer) => Promise<void> | void): Promise<boolean> {
    for (let left = size; left > 0; ) {
      const chunk = await some(left);
      if (chunk.length === 0) return false;
      left -= chunk.length;
      await take(chunk);
    }
    return true;
  }

  async function padded(size: number, take: (chunk: Buffer) => Promise<void> | void): Promise<void> {
    const padding = (BLOCK - (size % BLOCK)) % BLOCK;
    if (!(await exactly(size, take)) || !(await exactly(padding, () => {})))
      throw refused('it ends in the middle of a file');
  }

  return {
    async block() {
      const parts: Buffer[] = [];
      const isWhole = await exactly(BLOCK, (chunk) => void parts.push(chunk));
      return isWhole ? Buffer.concat(parts) : undefined;
    },
    async bytes(size) {
      const parts: Buffer[] = [];
      await padded(size, (chunk) => void parts.push(chunk));
      return Buffer.concat(parts);
    },
    copy: padded,
    skip: (size) => padded(size, () => {}),
    close: () => stream.destroy(),
  };
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 200));
}

function refused(why: string, cause?: unknown): PlatformError {
  return new PlatformError(
    'VALIDATION_ERROR',
    `The archive is refused: ${why}.`,
    cause === undefined ? {} : { cause },
  );
}
