import { dirname, join } from 'node:path';
import type { Logger } from '../../kit/logger.ts';
import { type Committer, createCommitter } from './committer/committer.ts';
import type { Unit } from './committer/protocol.ts';
import { type CommitterThread, endedError, startCommitterThread } from './committer/thread.ts';
import type { Database } from './database.ts';
import { DELIVERY_STATEMENTS } from './delivery-statements.ts';
import { createDrain } from './journal/drain.ts';
import { JOURNAL_FOLDER, journalFiles, shortId, unusedFiles } from './journal/files.ts';
import {
  reportForeign,
  reportGone,
  reportLeft,
  reportMoving,
  reportStuck,
  reportTakeOver,
} from './journal/reports.ts';
import { createSegments, type SegmentOptions, type Segments } from './journal/segments.ts';
import { createJournalWriter } from './journal/writer.ts';

/** How the inbox writes. Durable when a promise settles; all throw STORE_ERROR. */
export interface InboxLog {
  /**
   * In the order of the calls. Settles once `unit` is on disk, with its place: it is in the database when `applied` has
   * come that far.
   */
  append(unit: Unit): Promise<number>;
  /** Settles once `unit` is in the database, maybe ahead of what was appended before, with what its first step did there. */
  commit: Committer['write'];
  /** Reads what is in the database of the markers, beside the event loop. */
  markers: CommitterThread['markers'];
  /** Settles when all that was acknowledged is in the database: for those who read there. */
  settled(): Promise<void>;
  /** Settles when more is in the database than `applied`; for those whom a part may do. */
  progress(applied: number): Promise<void>;
  readonly applied: number;
  /** The place of what was acknowledged last. */
  readonly added: number;
  /** Of what was appended and is not in the database yet. */
  readonly waitingBytes: number;
  /** What keeps it from getting there; undefined while nothing does. */
  readonly failure: unknown;
  close(): Promise<void>;
}

/** At the end this long is what waits moved into the database; the rest is safe, and the next start does it. */
const FILING_AT_END_MS = 1500;
/** 256 MB in all: some 90,000 deliveries of 2 KB. After a burst 128 MB stay. */
const SEGMENTS: SegmentOptions = { segmentBytes: 16 * 1024 * 1024, mostSegments: 16, keptSegments: 7 };

export interface InboxLogOptions {
  logger: Logger;
  /** Whether other processes write to the database too; default true. */
  shared?: boolean;
  /** Whether it takes over what a former process left; default true. */
  takesOver?: boolean;
  /** How much the journal may hold that is not in the database yet; default 256 MB. */
  segments?: SegmentOptions;
}

/** Throws STORE_ERROR, and what SQLite says when what a former process left cannot be applied: then nothing of it is gone. */
export async function openInboxLog(
  db: Database,
  { logger, shared = true, takesOver = true, segments = SEGMENTS }: InboxLogOptions,
): Promise<InboxLog> {
  const { file } = db;
  const folder = join(dirname(file), JOURNAL_FOLDER);
  const isNew = placeOf(db).id === null;
  const hasFiles = journalFiles(folder).length + unusedFiles(folder).length > 0;
  const recover = takesOver && (isNew || hasFiles) ? folder : undefined;
  const thread = startCommitterThread({ file, statements: DELIVERY_STATEMENTS, recover });
  try {
    if (recover) reportTakeOver(await thread.ready, folder, logger);
    if (takesOver) reportForeign(file, shortId(idOf(db)), folder, logger);
    if (shared) return sharedLog(thread, file);
    const gone = (each: string): void => reportGone(logger, each, file);
    const files = createSegments(folder, { ...segments, database: idOf(db), gone });
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

/** Only one that nobody took over for has none. */
function idOf(db: Database): Buffer {
  const { id } = placeOf(db);
  if (id === null)
    throw new Error(`${db.file} has no journal of its own: whoever writes one takes over first.`);
  return id;
}

/**
 * For a process that is alone with the database: what is appended goes to a journal, which takes it in a fraction of what
 * a row costs, and from there into the database.
 */
function journalledLog(thread: CommitterThread, db: Database, segments: Segments, logger: Logger): InboxLog {
  const { file } = db;
  const { folder } = segments;
  const { applied } = placeOf(db);
  const drain = createDrain({
    apply: thread.apply,
    applied,
    failed: (error) => reportStuck(logger, folder, file, error),
    recovered: () => reportMoving(logger, folder, file),
    closedError: () => endedError(file),
    emptied: () => segments.trim(drain.applied),
  });
  const writer = createJournalWriter({
    segments,
    sequence: applied,
    applied: () => drain.applied,
    progress: drain.progress,
    written: drain.add,
  });
  const committer = createCommitter(thread, file);
  return {
    append: writer.append,
    commit: committer.write,
    markers: thread.markers,
    settled: drain.all,
    progress: drain.progress,
    get applied() {
      return drain.applied;
    },
    get added() {
      return drain.added;
    },
    get waitingBytes() {
      return drain.waitingBytes;
    },
    get failure() {
      return drain.failure;
    },
    async close() {
      const inTime = setTimeout(() => {
        drain.close();
        thread.hurry();
      }, FILING_AT_END_MS);
      await writer.close();
      // What cannot be applied now is applied at the next start.
      await drain.all().catch(thread.hurry);
      drain.close();
      await committer.close();
      await thread.close();
      clearTimeout(inTime);
      const { waitingBytes } = drain;
      await segments.close({ remove: waitingBytes === 0 });
      if (waitingBytes > 0) reportLeft(logger, folder, file, waitingBytes);
    },
  };
}

/** For processes that share the database, where each must see at once what the others claim. */
function sharedLog(thread: CommitterThread, file: string): InboxLog {
  const committer = createCommitter(thread, file);
  return {
    async append(unit) {
      await committer.write(unit);
      return 0;
    },
    commit: committer.write,
    markers: thread.markers,
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
