import { dirname, join } from 'node:path';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Database } from '../database.ts';
import { type Committer, createCommitter } from './committer/committer.ts';
import type { Unit } from './committer/protocol.ts';
import { CommitterThread, endedError } from './committer/thread.ts';
import { DELIVERY_STATEMENTS } from './deliveries/statements.ts';
import { Checkpointer } from './journal/checkpointer.ts';
import { JOURNAL_FOLDER, journalFiles, shortId, unusedFiles } from './journal/files.ts';
import {
  reportForeign,
  reportGone,
  reportLeft,
  reportMoving,
  reportRecovery,
  reportStuck,
} from './journal/reports.ts';
import { type SegmentOptions, Segments } from './journal/segments.ts';
import { WriteLoad } from './journal/write-load.ts';
import { JournalWriter } from './journal/writer.ts';

/** Write path of the webhook inbox. Writes are durable once they settle. All methods throw STORE_ERROR. */
export interface InboxLog {
  /**
   * Writes units in call order. Settles with the unit's sequence once the unit is on disk. The unit is in the
   * database once the applied sequence reaches that number.
   */
  append(unit: Unit): Promise<number>;
  /**
   * Settles once `unit` is in the database, possibly before earlier appends, with the result of its first
   * step.
   */
  commit: Committer['write'];
  /** Reads stored markers off the event loop. */
  markers: CommitterThread['markers'];
  /** Resolves when every acknowledged unit is in the database. */
  settled(): Promise<void>;
  /** Resolves when units with a sequence above `applied` are in the database. */
  progress(applied: number): Promise<void>;
  readonly applied: number;
  /** Sequence of the last acknowledged unit. */
  readonly added: number;
  /** Bytes appended but not yet in the database. */
  readonly waitingBytes: number;
  /** The error that keeps appended units out of the database, if any. */
  readonly failure: unknown;
  close(): Promise<void>;
}

/** Time limit for applying the journal at shutdown. Unapplied units stay on disk, and the next start applies them. */
const SHUTDOWN_APPLY_MS = 1500;
/** Journal limits: 256 MB in all, some 90,000 deliveries of 2 KB. After a burst, 128 MB are kept. */
const SEGMENTS: SegmentOptions = { segmentBytes: 16 * 1024 * 1024, maxSegments: 16, spareSegments: 7 };

export interface InboxLogOptions {
  logger: Logger;
  /** Whether other processes write to the database too; default true. */
  shared?: boolean;
  /** Whether to recover the journal of an earlier process; default true. */
  recovers?: boolean;
  /** Limits of the journal; default 256 MB. */
  segments?: SegmentOptions;
}

/**
 * Opens the log. Throws STORE_ERROR, or SQLite's error when the journal of an earlier process cannot be applied; no
 * file is removed then.
 */
export async function openInboxLog(
  db: Database,
  { logger, shared = true, recovers = true, segments = SEGMENTS }: InboxLogOptions,
): Promise<InboxLog> {
  const { file } = db;
  const folder = join(dirname(file), JOURNAL_FOLDER);
  const isNew = placeOf(db).id === null;
  const hasFiles = journalFiles(folder).length + unusedFiles(folder).length > 0;
  const recover = recovers && (isNew || hasFiles) ? folder : undefined;
  const thread = new CommitterThread({ file, statements: DELIVERY_STATEMENTS, recover });
  try {
    if (recover) reportRecovery(await thread.ready, folder, logger);
    if (recovers) reportForeign(file, shortId(idOf(db)), folder, logger);
    if (shared) return sharedLog(thread, file);
    const gone = (each: string): void => reportGone(logger, each, file);
    const files = new Segments(folder, { ...segments, database: idOf(db), gone });
    return journalledLog(thread, db, files, logger);
  } catch (error) {
    await thread.close();
    throw error;
  }
}

function placeOf({ prepare }: Database): { applied: number; id: Buffer | null } {
  return prepare<[], { applied: number; id: Buffer | null }>(
    'select applied, id from delivery_journal',
  ).get()!;
}

/** Returns the database's id, which every recovered database has. */
function idOf(db: Database): Buffer {
  const { id } = placeOf(db);
  if (id === null)
    throw new Error(`${db.file} has no journal id; the journal must be recovered before it is written.`);
  return id;
}

/**
 * Log of a process that writes alone: appends go to a journal, at a fraction of a row's cost, and from there into the
 * database.
 */
function journalledLog(thread: CommitterThread, db: Database, segments: Segments, logger: Logger): InboxLog {
  const { file } = db;
  const { folder } = segments;
  const { applied } = placeOf(db);
  const load = new WriteLoad();
  const checkpointer = new Checkpointer({
    apply: (range) => thread.apply(range),
    applied,
    load,
    failed: (error) => reportStuck(logger, folder, file, error),
    recovered: () => reportMoving(logger, folder, file),
    closedError: () => endedError(file),
    emptied: (until) => segments.trim(until),
  });
  const writer = new JournalWriter({ segments, checkpointer, load });
  const committer = createCommitter(thread, file);
  return {
    append: (unit) => writer.append(unit),
    commit: (unit) => committer.write(unit),
    markers: (range) => thread.markers(range),
    settled: () => checkpointer.all(),
    progress: (before) => checkpointer.progress(before),
    get applied() {
      return checkpointer.applied;
    },
    get added() {
      return checkpointer.added;
    },
    get waitingBytes() {
      return checkpointer.waitingBytes;
    },
    get failure() {
      return checkpointer.failure;
    },
    async close() {
      const inTime = setTimeout(() => {
        checkpointer.close();
        thread.stopWaiting();
      }, SHUTDOWN_APPLY_MS);
      await writer.close();
      // Units that cannot be applied now are applied by the next start.
      await checkpointer.all().catch(() => thread.stopWaiting());
      checkpointer.close();
      await committer.close();
      await thread.close();
      clearTimeout(inTime);
      const { waitingBytes } = checkpointer;
      await segments.close({ remove: waitingBytes === 0 });
      if (waitingBytes > 0) reportLeft(logger, folder, file, waitingBytes);
    },
  };
}

/** Log of processes that share the database: each must see the others' claims at once, so nothing goes to a journal. */
function sharedLog(thread: CommitterThread, file: string): InboxLog {
  const committer = createCommitter(thread, file);
  return {
    async append(unit) {
      await committer.write(unit);
      return 0;
    },
    commit: (unit) => committer.write(unit),
    markers: (range) => thread.markers(range),
    settled: async () => {},
    progress: async () => {},
    applied: 0,
    added: 0,
    waitingBytes: 0,
    failure: undefined,
    async close() {
      await committer.close();
      await thread.close();
    },
  };
}
