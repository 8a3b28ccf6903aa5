import { archiveRefused, BLOCK, decodeHeader } from './header.ts';

/** Max bytes of an extended header. Names have at most a kilobyte. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Max extended headers before one entry. Empty ones compress so well that an archive could keep us reading for minutes. */
const MAX_HEADERS = 8;

export interface TarEntry {
  /** As stored: may point anywhere. */
  name: string;
  type: 'file' | 'folder' | 'symbolic link' | 'hard link' | 'device or unknown entry';
  size: number;
  mode: number;
}

/** Reads an archive entry by entry. Copy or skip the content of each entry before reading the next. */
export interface TarReader {
  /** Returns undefined at the end. */
  next(): Promise<TarEntry | undefined>;
  copy(size: number, write: (chunk: Buffer) => Promise<void> | void): Promise<void>;
  skip(size: number): Promise<void>;
  close(): void;
}

/** Throws VALIDATION_ERROR for damaged or invalid archives. Extended headers (long names) are applied to their entry. */
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

/** Finds `<length> path=<value>\n` among the records of a pax header. */
function paxPath(text: string): string | undefined {
  return /(?:^|\n)\d+ path=([^\n]*)\n/.exec(text)?.[1];
}

interface BlockReader {
  /** Reads one block; undefined at the end. */
  block(): Promise<Buffer | undefined>;
  bytes(size: number): Promise<Buffer>;
  /** Reads `size` bytes and the padding to the next block. */
  padded(size: number, take: (chunk: Buffer) => Promise<void> | void): Promise<void>;
}

/** Reads exact amounts from a stream. */
function createBlockReader(stream: AsyncIterable<Buffer>): BlockReader {
  const chunks = stream[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);

  /** Returns at most `limit` bytes as they arrive; empty at the end. */
  async function readUpTo(limit: number): Promise<Buffer> {
    while (rest.length === 0) {
      const next = await chunks.next();
      if (next.done) return Buffer.alloc(0);
      rest = next.value;
    }
    const taken = rest.subarray(0, limit);
    rest = rest.subarray(taken.length);
    return taken;
  }

  async function readExactly(size: number, take: (chunk: Buffer) => Promise<void> | void): Promise<boolean> {
    for (let left = size; left > 0; ) {
      const chunk = await readUpTo(left);
      if (chunk.length === 0) return false;
      left -= chunk.length;
      await take(chunk);
    }
    return true;
  }

  async function padded(size: number, take: (chunk: Buffer) => Promise<void> | void): Promise<void> {
    const padding = (BLOCK - (size % BLOCK)) % BLOCK;
    if (!(await readExactly(size, take)) || !(await readExactly(padding, () => {})))
      throw archiveRefused('it ends in the middle of a file');
  }

  return {
    async block() {
      const parts: Buffer[] = [];
      const isWhole = await readExactly(BLOCK, (chunk) => void parts.push(chunk));
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
