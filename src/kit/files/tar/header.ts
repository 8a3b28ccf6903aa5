import { PlatformError } from '../../errors/errors.ts';

/** Block size of a tar archive. */
export const BLOCK = 512;

const SIZE = { at: 124, length: 12 } as const;
const MODE = { at: 100, length: 8 } as const;
const CHECKSUM = { at: 148, length: 8 } as const;
const TYPE_AT = 156;
/** Largest size in eleven octal digits; larger sizes are written in base 256. */
const MAX_OCTAL = 8 ** 11 - 1;

export interface TarHeader {
  name: string;
  type: string;
  size: number;
  /** Permission bits. */
  mode: number;
  /** Epoch seconds, default 0. */
  modifiedAt?: number;
}

/** Encodes one ustar header block. The name may have 100 bytes; a longer one needs an extended header before. */
export function encodeHeader({ name, type, size, mode, modifiedAt = 0 }: TarHeader): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0, 100, 'utf8');
  writeOctal(block, MODE, mode);
  writeOctal(block, { at: 108, length: 8 }, 0);
  writeOctal(block, { at: 116, length: 8 }, 0);
  if (size <= MAX_OCTAL) writeOctal(block, SIZE, size);
  else writeBase256(block, size);
  writeOctal(block, { at: 136, length: 12 }, modifiedAt);
  block.write(type, TYPE_AT, 1, 'latin1');
  block.write('ustar\u000000', 257, 8, 'latin1');
  block.write(`${checksum(block).toString(8).padStart(6, '0')}\0 `, CHECKSUM.at, CHECKSUM.length, 'latin1');
  return block;
}

/** Throws VALIDATION_ERROR if the block is not a header. */
export function decodeHeader(block: Buffer): TarHeader {
  if (checksum(block) !== octal(block, CHECKSUM.at, CHECKSUM.length))
    throw archiveRefused('it is damaged or not a tar archive');
  return {
    name: ustarName(block),
    type: String.fromCharCode(block[TYPE_AT] ?? 0),
    size: sizeOf(block),
    mode: octal(block, MODE.at, MODE.length) & 0o777,
  };
}

export function archiveRefused(why: string, cause?: unknown): PlatformError {
  return new PlatformError(
    'VALIDATION_ERROR',
    `The archive is refused: ${why}.`,
    cause === undefined ? {} : { cause },
  );
}

/** Sum of all bytes, with the checksum field itself counted as spaces. */
function checksum(block: Buffer): number {
  let sum = 0;
  for (const [index, byte] of block.entries()) {
    const isOwn = index >= CHECKSUM.at && index < CHECKSUM.at + CHECKSUM.length;
    sum += isOwn ? 32 : byte;
  }
  return sum;
}

function ustarName(block: Buffer): string {
  const name = text(block, 0, 100);
  const prefix = text(block, 257, 5) === 'ustar' ? text(block, 345, 155) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

function sizeOf(block: Buffer): number {
  if (block[SIZE.at] !== 0x80) return octal(block, SIZE.at, SIZE.length);
  const size = block.readBigUInt64BE(SIZE.at + 4);
  if (size > Number.MAX_SAFE_INTEGER) throw archiveRefused('one of its headers is malformed');
  return Number(size);
}

function writeBase256(block: Buffer, size: number): void {
  block[SIZE.at] = 0x80;
  block.writeBigUInt64BE(BigInt(size), SIZE.at + 4);
}

function writeOctal(block: Buffer, { at, length }: { at: number; length: number }, value: number): void {
  block.write(value.toString(8).padStart(length - 1, '0'), at, length - 1, 'latin1');
}

function octal(block: Buffer, start: number, length: number): number {
  const digits = text(block, start, length).trim();
  if (!/^[0-7]*$/.test(digits)) throw archiveRefused('one of its headers is malformed');
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

function text(block: Buffer, start: number, length: number): string {
  const field = block.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.subarray(0, end === -1 ? length : end).toString('utf8');
}
