import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { JournalRange } from '../committer/protocol.ts';

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

export function readWhole(file: string): Buffer {
  return readFileSync(file);
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
