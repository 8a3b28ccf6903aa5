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
import { MESSAGE_STATEMENTS } from './messages/writes.ts';

/**
 * Write path of the webhook inbox. A write is on disk when its promise resolves. Methods throw STORE_ERROR if the
 * database or the journal cannot be used.
 */
export interface InboxLog {
  /**
   * Appends a write to the journal, and resolves with its sequence number once the write is on disk. The write is in
   * the database when `applied` reaches this number. Without a journal, commits the write and resolves with 0.
   */
  append(unit: Unit): Promise<number>;
  /**
   * Commits a write directly to the database, possibly before earlier appended writes. Resolves with the result of the
   * first step of the write.
   */
  commit: Committer['write'];
  /** Reads stored markers on the committer thread. */
  markers: CommitterThread['markers'];
  /** Resolves when all acknowledged writes are in the database. */
  settled(): Promise<void>;
  /** Resolves when a write with a sequence number above `applied` is in the database. */
  progress(applied: number): Promise<void>;
  readonly applied: number;
  /** Sequence number of the last acknowledged write. */
  readonly added: number;
  /** Total size of the acknowledged writes that are not in the database yet. */
  readonly waitingBytes: number;
  /** Error that prevents acknowledged writes from reaching the database, or undefined. */
  readonly failure: unknown;
  close(): Promise<void>;
}

const STATEMENTS = { ...DELIVERY_STATEMENTS, ...MESSAGE_STATEMENTS };

/** Time limit for applying the journal at shutdown. The next start applies the remaining frames. */
const SHUTDOWN_APPLY_MS = 1500;
/**
 * Journal limits. The maximum of 256 MB holds about 90,000 deliveries of 2 KB. After a burst, 128 MB of files are kept
 * for reuse.
 */
const SEGMENTS: SegmentOptions = { segmentBytes: 16 * 1024 * 1024, maxSegments: 16, spareSegments: 7 };

export interface InboxLogOptions {
  logger: Logger;
  /** Whether other processes also write to the database, true by default. */
  shared?: boolean;
  /** Whether to recover the journal that an earlier process left, true by default. */
  recovers?: boolean;
  segments?: SegmentOptions;
}

/**
 * Opens the log, and applies the journal of an earlier process if `recovers` is set. If applying fails, throws
 * STORE_ERROR or an SQLite error and keeps the journal files.
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
  const thread = new CommitterThread({ file, statements: STATEMENTS, recover });
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

/** Returns the database id, which each journal file contains to identify its database. */
function idOf(db: Database): Buffer {
  const { id } = placeOf(db);
  if (id === null)
    throw new Error(`${db.file} has no journal id; the journal must be recovered before it is written.`);
  return id;
}

/**
 * Log for a single process. Writes first go to a journal, because appending to the journal is much cheaper than
 * inserting rows.
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
      // The next start applies the frames that cannot be applied now.
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

/**
 * Log for several processes that share a database. The log has no journal, because each process must see the claims of
 * other processes at once.
 */
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
