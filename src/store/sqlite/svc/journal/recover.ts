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
import { codeOf } from '../../../../kit/errors/errors.ts';
import type { Recovered } from '../committer/protocol.ts';
import {
  foreignFile,
  type JournalFile,
  journalFiles,
  journalInOrder,
  readWhole,
  unusedFiles,
} from './files.ts';
import type { Frame } from './frame.ts';
import { type JournalContent, readJournal } from './read-journal.ts';

export interface JournalOwner {
  /** Id of the database, or null if the database was just created or migrated. */
  id: Buffer | null;
  /** Sequence number of the last applied frame. */
  readonly applied: number;
  /** Applies frames up to the first gap in the sequence numbers. `hasHole` is true if there was a gap. */
  apply(frames: Iterable<Frame>): { units: number; hasHole: boolean };
  /** Assigns a new id to the database. The id is on disk when the call returns. */
  renew(): void;
}

/**
 * Applies the journal of an earlier process, then removes or quarantines the journal files. After an error or a crash,
 * the next start repeats the recovery.
 */
export function recoverJournal(folder: string, owner: JournalOwner): Recovered {
  for (const file of unusedFiles(folder)) rmSync(file);
  const files = journalInOrder(folder);
  const foreign = files.filter((each) => isForeign(each, owner.id));
  quarantineForeign(folder, foreign);
  const own = files.filter((each) => !foreign.includes(each));
  const recovered: Recovered = { units: 0, quarantine: undefined, damagedHeaders: [] };
  let isDamaged = false;
  for (const { file } of own) {
    // Only one file is read at a time to limit memory use.
    const content = readJournal(readWhole(file));
    if (content?.hasDamagedHeader) recovered.damagedHeaders.push(file);
    const { units, isMissing } = content ? applyReading(owner, content) : { units: 0, isMissing: true };
    recovered.units += units;
    isDamaged ||= isMissing;
  }
  if (isDamaged) recovered.quarantine = quarantineDamaged(folder);
  else for (const { file } of own) rmSync(file);
  removeIfEmpty(folder);
  // A database without an id gets an id. If files were quarantined, the database gets a new id, so that these files are
  // never applied to it later.
  if (owner.id === null || isDamaged) owner.renew();
  return recovered;
}

/**
 * Returns whether a file belongs to another database. A file and a database without ids belong together, because both
 * are older than the ids.
 */
function isForeign({ database, first }: JournalFile, id: Buffer | null): boolean {
  if (database) return id === null || !database.equals(id);
  return database === null && id !== null && first !== undefined;
}

function applyReading(
  owner: JournalOwner,
  { database, frames, isStartLost, writtenUntil }: JournalContent,
): { units: number; isMissing: boolean } {
  const { applied } = owner;
  const { units, hasHole } = owner.apply(frames);
  // An applied frame reveals lost frames by a gap in the sequence numbers. Without one, a lost start is not ruled out.
  const isUnknown = isStartLost && owner.applied === applied;
  // A database with an id only creates files with headers. A file without a header has therefore lost its start.
  const hasLostAll = database === null && owner.id !== null;
  return { units, isMissing: hasHole || isUnknown || hasLostAll || writtenUntil > owner.applied };
}

function quarantineForeign(folder: string, files: readonly JournalFile[]): void {
  for (const { file, database } of files) renameSync(file, freeName(foreignFile(file, database ?? null)));
  if (files.length > 0) syncFolder(folder);
}

function quarantineDamaged(folder: string): string {
  const quarantine = freeName(`${folder}-damaged`);
  mkdirSync(quarantine, { mode: 0o700 });
  for (const file of journalFiles(folder)) renameSync(file, join(quarantine, basename(file)));
  for (const each of [quarantine, folder, dirname(folder)]) syncFolder(each);
  return quarantine;
}

/** Returns a name that is not in use, so that files of an earlier quarantine are never overwritten. */
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

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error) ?? '')) throw error;
  }
}
