import { archiveRefused, BLOCK, decodeHeader } from './header.ts';

/** Of extended headers: names are at most a kilobyte, so this holds many. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Before one entry: of each kind there is one. Empty ones pack so well that megabytes of them would be read for minutes. */
const MAX_HEADERS = 8;

export interface TarEntry {
  /** As written: it may lead anywhere. */
  name: string;
  type: 'file' | 'folder' | 'symbolic link' | 'hard link' | 'device or unknown entry';
  size: number;
  mode: number;
}

/** Reads an archive entry by entry; the content of each is to be copied or skipped before the next. */
export interface TarReader {
  /** Undefined at the end. */
  next(): Promise<TarEntry | undefined>;
  copy(size: number, write: (chunk: Buffer) => Promise<void> | void): Promise<void>;
  skip(size: number): Promise<void>;
  close(): void;
}

/** Throws VALIDATION_ERROR for what is no archive, or a damaged one. Extended headers (long names) are read on the way. */
export function readTar(stream: AsyncIterable<Buffer> & { destroy(): void }): TarReader {
  const blocks = createBlockReader(stream);
  return {
    next: () => nextEntry(blocks),
    copy: blocks.padded,
    skip: (size) => blocks.padded(size, () => {}),
    close: () => stream.destroy(),
  };
}

async function nextEntry(blocks: BlockReader): Promise<TarEntry | undefined> {
  let longName: string | undefined;
  for (let headers = 0; headers <= MAX_HEADERS; headers++) {
    const block = await blocks.block();
    if (!block || block.every((byte) => byte === 0)) return undefined;
    const { name, type, size, mode } = decodeHeader(block);
    if (type === 'x' || type === 'g' || type === 'L') {
      if (size > MAX_HEADER_BYTES) throw archiveRefused('one of its headers is too large');
      const text = (await blocks.bytes(size)).toString('utf8');
      if (type === 'L') longName = text.replace(/\0.*$/s, '');
      else if (type === 'x') longName = paxPath(text) ?? longName;
      continue;
    }
    return { name: longName ?? name, type: typeOf(type), size, mode };
  }
  throw archiveRefused(`more than ${MAX_HEADERS} headers come before one file`);
}

function typeOf(flag: string): TarEntry['type'] {
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

interface BlockReader {
  /** One block; undefined at the end. */
  block(): Promise<Buffer | undefined>;
  bytes(size: number): Promise<Buffer>;
  /** So many bytes, and what fills up their last block. */
  padded(size: number, take: (chunk: Buffer) => Promise<void> | void): Promise<void>;
}

/** Reads a stream in exact amounts. */
function createBlockReader(stream: AsyncIterable<Buffer>): BlockReader {
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
      throw archiveRefused('it ends in the middle of a file');
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
    padded,
  };
}
