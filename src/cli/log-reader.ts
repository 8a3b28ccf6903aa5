import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const CHUNK_BYTES = 64 * 1024;
const POLL_MS = 150;

/** Position up to which a log file was read. The inode changes when the file is rotated. */
export interface LogPosition {
  file: string;
  inode: number;
  offset: number;
}

/** Returns the last `count` records of all files, ordered by time, and the positions where `followLogs` continues. */
export function lastRecords(files: string[], count: number): { records: string[]; ends: LogPosition[] } {
  const ends: LogPosition[] = [];
  const records: string[] = [];
  for (const file of files) {
    // After a rotation, some of the last lines can be in the previous file.
    const current = tailOf(file, count);
    ends.push(current.end);
    const missing = count - current.lines.length;
    const older = missing > 0 ? tailOf(`${file}.1`, missing).lines : [];
    records.push(...older, ...current.lines);
  }
  const timed = records.map((record) => ({ record, time: timeOf(record) }));
  timed.sort((a, b) => a.time - b.time);
  return { records: count === 0 ? [] : timed.slice(-count).map(({ record }) => record), ends };
}

/**
 * Delivers new records until the process ends. Polls the files, because network and container file systems do not
 * report appends reliably.
 */
export async function followLogs(from: LogPosition[], take: (record: string) => void): Promise<never> {
  const positions = from.map((position) => ({ ...position, rest: '' }));
  for (;;) {
    for (const position of positions) readNew(position, take);
    await sleep(POLL_MS);
  }
}

function readNew(position: LogPosition & { rest: string }, take: (record: string) => void): void {
  const found = statSync(position.file, { throwIfNoEntry: false });
  if (!found) return;
  if (found.ino !== position.inode) {
    // Lines written between the last read and the log rotation are at the end of the rotated file.
    const moved = `${position.file}.1`;
    if (statSync(moved, { throwIfNoEntry: false })?.ino === position.inode)
      readFrom({ ...position, file: moved }, position, take);
    position.inode = found.ino;
    position.offset = 0;
  }
  if (found.size > position.offset) readFrom(position, position, take);
}

function readFrom(
  source: LogPosition,
  position: LogPosition & { rest: string },
  take: (record: string) => void,
): void {
  const fd = openSync(source.file, 'r');
  try {
    const size = fstatSync(fd).size;
    const bytes = Buffer.alloc(Math.max(0, size - position.offset));
    const read = readSync(fd, bytes, 0, bytes.length, position.offset);
    position.offset += read;
    const lines = (position.rest + bytes.subarray(0, read).toString('utf8')).split('\n');
    position.rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') take(line);
  } finally {
    closeSync(fd);
  }
}

/** Reads the last lines of a file from its end, without reading the whole file. */
function tailOf(file: string, count: number): { lines: string[]; end: LogPosition } {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch {
    return { lines: [], end: { file, inode: 0, offset: 0 } };
  }
  try {
    const { size, ino } = fstatSync(fd);
    const blocks: Buffer[] = [];
    let newlines = 0;
    let at = size;
    while (at > 0 && newlines <= count) {
      const length = Math.min(CHUNK_BYTES, at);
      at -= length;
      const block = Buffer.alloc(length);
      readSync(fd, block, 0, length, at);
      blocks.unshift(block);
      for (const byte of block) if (byte === 0x0a) newlines++;
    }
    const lines = Buffer.concat(blocks).toString('utf8').split('\n').filter(Boolean);
    return { lines: count === 0 ? [] : lines.slice(-count), end: { file, inode: ino, offset: size } };
  } finally {
    closeSync(fd);
  }
}

function timeOf(record: string): number {
  const found = /"time":(\d+)/.exec(record);
  return found ? Number(found[1]) : 0;
}
