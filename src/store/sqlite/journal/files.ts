import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../../../kit/errors.ts';
import type { JournalRange } from '../committer/protocol.ts';
import { readFrames } from './frame.ts';

/** In the data folder. */
export const JOURNAL_FOLDER = 'inbox';

const NAME = /^\d+\.log$/;

export function journalFile(folder: string, number: number): string {
  return join(folder, `${number}.log`);
}

/** Those that are there, in no order that means anything. */
export function journalFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && NAME.test(entry.name))
    .map(({ name }) => join(folder, name));
}

/** Those that hold frames, in the order in which they were written. */
export function journalInOrder(folder: string): string[] {
  return journalFiles(folder)
    .map((file) => ({ file, first: readFrames(readWhole(file)).next().value?.sequence }))
    .filter((each): each is { file: string; first: number } => each.first !== undefined)
    .sort((a, b) => a.first - b.first)
    .map(({ file }) => file);
}

/** Empty when it is gone: whoever writes the journal removes what is applied. */
export function readWhole(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

/**
 * A file that may be written to meanwhile. Behind a frame that was caught in the midst may be whole ones, which would
 * look like damage; a second look finds it whole.
 */
export function readWhileWritten(file: string): Buffer {
  const bytes = readWhole(file);
  const sequences = Array.from(readFrames(bytes), ({ sequence }) => sequence);
  const hasGap = sequences.some((sequence, n) => sequence !== sequences[0]! + n);
  return hasGap ? readWhole(file) : bytes;
}

export function readRange({ file, from, to }: JournalRange): Buffer {
  const fd = openSync(file, 'r');
  try {
    const bytes = Buffer.allocUnsafe(to - from);
    let filled = 0;
    while (filled < bytes.length) {
      const count = readSync(fd, bytes, filled, bytes.length - filled, from + filled);
      if (count === 0) throw new Error(`${file} ends at ${from + filled}, before ${to}`);
      filled += count;
    }
    return bytes;
  } finally {
    closeSync(fd);
  }
}
