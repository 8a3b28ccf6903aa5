import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from '../../kit/logger.ts';
import { type Committer, createCommitter } from './committer/committer.ts';
import type { Recovered, Unit } from './committer/protocol.ts';
import { type CommitterThread, startCommitterThread } from './committer/thread.ts';
import type { Database } from './database.ts';
import { DELIVERY_STATEMENTS } from './delivery-statements.ts';
import { createDrain } from './journal/drain.ts';
import { JOURNAL_FOLDER, journalFiles } from './journal/files.ts';
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
  /** Settles when all that was acknowledged is in the database: for those who read there. */
  settled(): Promise<void>;
  /** Settles when more is in the database than `applied`; for those whom a part may do. */
  progress(applied: number): Promise<void>;
  readonly applied: number;
  /** The place of what was acknowledged last. */
  readonly added: number;
  /** Of what was appended and is not in the database yet. */
  readonly waitingBytes: number;
  close(): Promise<void>;
}

/** 256 MB in all: some 90,000 deliveries of 2 KB. */
const SEGMENTS: SegmentOptions = { segmentBytes: 16 * 1024 * 1024, mostSegments: 16 };

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
  const hasLeft = takesOver && journalFiles(folder).length > 0;
  const recover = hasLeft ? folder : undefined;
  const thread = startCommitterThread({ file, statements: DELIVERY_STATEMENTS, recover });
  try {
    if (hasLeft) await takeOver(await thread.ready, folder, logger);
    return shared
      ? sharedLog(thread, file)
      : journalledLog(thread, db, createSegments(folder, segments), logger);
  } catch (error) {
    await thread.close();
    throw error;
  }
}

async function takeOver({ units, isDamaged }: Recovered, folder: string, logger: Logger): Promise<void> {
  if (isDamaged) {
    const aside = freeName(`${folder}-damaged`);
    await rename(folder, aside);
    logger.error(
      `A part of ${folder} is missing or cannot be read. What goes before it was moved into svc.db, what follows was not; the files are kept in ${aside}. Check the disk, unless svc.db was replaced by another copy`,
      { meta: { units } },
    );
    return;
  }
  await rm(folder, { recursive: true });
  if (units > 0)
    logger.info('What the former gateway acknowledged last was moved into svc.db', { meta: { units } });
}

/** What was put aside before stays. */
function freeName(name: string): string {
  let free = name;
  for (let n = 2; existsSync(free); n++) free = `${name}-${n}`;
  return free;
}

/**
 * For a process that is alone with the database: what is appended goes to a journal, which takes it in a fraction of what
 * a row costs, and from there into the database.
 */
function journalledLog(
  thread: CommitterThread,
  { file, prepare }: Database,
  segments: Segments,
  logger: Logger,
): InboxLog {
  const { folder } = segments;
  const { applied } = prepare<[], { applied: number }>('select applied from delivery_journal').get()!;
  const drain = createDrain({
    apply: thread.apply,
    applied,
    failed: (error) =>
      logger.error(
        `What the gateway acknowledged cannot be moved from ${folder} into ${file}; it is kept, and tried again each second`,
        { error },
      ),
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
    async close() {
      await writer.close();
      // What cannot be applied now is applied at the next start.
      const isEmpty = await drain.all().then(
        () => true,
        () => false,
      );
      drain.close();
      await committer.close();
      await thread.close();
      await segments.close({ remove: isEmpty });
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
    settled: async () => {},
    progress: async () => {},
    applied: 0,
    added: 0,
    waitingBytes: 0,
    async close() {
      await committer.close();
      await thread.close();
    },
  };
}
