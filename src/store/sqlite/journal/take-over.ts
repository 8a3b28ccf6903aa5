import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../../../kit/errors.ts';
import type { Recovered } from '../committer/protocol.ts';
import {
  asideFile,
  type JournalFile,
  journalFiles,
  journalInOrder,
  readWhole,
  unusedFiles,
} from './files.ts';
import type { Frame } from './frame.ts';
import { type Reading, readJournal } from './reading.ts';

/** The database whose journal is taken over. */
export interface JournalOwner {
  /** Null in one that was made, or brought to its schema, just now. */
  id: Buffer | null;
  /** Of the last frame that is in it. */
  readonly applied: number;
  /** Up to the first frame that does not follow. */
  apply(frames: Iterable<Frame>): { units: number; hasHole: boolean };
  /** Gives it another id; on disk when this returns. */
  renew(): void;
}

/**
 * Moves what an earlier process acknowledged into its database, and leaves the folder without a file that is a journal's.
 * A process may die behind each step: what was done by then is found done. A database without an id gets it last of all, as
 * the files that are its own have none either. Throws what SQLite and the system say; then nothing is gone.
 */
export function takeOver(folder: string, owner: JournalOwner): Recovered {
  for (const file of unusedFiles(folder)) rmSync(file);
  const files = journalInOrder(folder);
  const foreign = files.filter((each) => isForeign(each, owner.id));
  setForeignAside(folder, foreign);
  const own = files.filter((each) => !foreign.includes(each));
  const recovered: Recovered = { units: 0, aside: undefined, worn: [] };
  let isDamaged = false;
  for (const { file } of own) {
    // One at a time in memory.
    const reading = readJournal(readWhole(file));
    if (reading?.isWorn) recovered.worn.push(file);
    const { units, isMissing } = reading ? applyReading(owner, reading) : { units: 0, isMissing: true };
    recovered.units += units;
    isDamaged ||= isMissing;
  }
  if (isDamaged) recovered.aside = setDamagedAside(folder);
  else for (const { file } of own) rmSync(file);
  removeIfEmpty(folder);
  // From here on its sequences mean other frames than those in what was set aside.
  if (owner.id === null || isDamaged) owner.renew();
  return recovered;
}

/** One without an id takes files without one for its own: both are of the version before there were ids. */
function isForeign({ database, first }: JournalFile, id: Buffer | null): boolean {
  if (database) return id === null || !database.equals(id);
  return database === null && id !== null && first !== undefined;
}

function applyReading(
  owner: JournalOwner,
  { database, frames, isStartLost, writtenUntil }: Reading,
): { units: number; isMissing: boolean } {
  const { applied } = owner;
  const { units, hasHole } = owner.apply(frames);
  // What was lost before frames that are not applied yet is of their turn, and their sequences tell what it was.
  const isUnknown = isStartLost && owner.applied === applied;
  // Files of a database with an id have a header from their first moment on.
  const hasLostAll = database === null && owner.id !== null;
  return { units, isMissing: hasHole || isUnknown || hasLostAll || writtenUntil > owner.applied };
}

function setForeignAside(folder: string, files: readonly JournalFile[]): void {
  for (const { file, database } of files) renameSync(file, freeName(asideFile(file, database ?? null)));
  if (files.length > 0) syncFolder(folder);
}

function setDamagedAside(folder: string): string {
  const aside = freeName(`${folder}-damaged`);
  mkdirSync(aside, { mode: 0o700 });
  for (const file of journalFiles(folder)) renameSync(file, join(aside, basename(file)));
  for (const each of [aside, folder, dirname(folder)]) syncFolder(each);
  return aside;
}

/** What was put aside before stays. */
function freeName(name: string): string {
  let free = name;
  for (let n = 2; existsSync(free); n++) free = `${name}-${n}`;
  return free;
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** It stays where somebody keeps other files in it. */
function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error) ?? '')) throw error;
  }
}
