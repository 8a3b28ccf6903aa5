import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../../../kit/logger.ts';
import { entryFile } from '../../../kit/paths.ts';
import type { DeliveryFilter } from '../../ports/index.ts';
import { type Database, openDatabase } from '../database.ts';
import { usedBytes } from '../used-bytes.ts';
import { SEGMENT_DOCS } from './buckets.ts';
import type { TextIndexStart } from './protocol.ts';
import { TEXT_INDEX_FILE, TEXT_INDEX_MIGRATIONS } from './schema.ts';
import { type TextCandidates, textCandidates } from './search.ts';

/** The index over texts of deliveries. */
export interface TextIndex {
  /** Undefined where nothing is indexed, or the text is too short for it: then the rows are scanned. */
  search(
    namespaceId: string,
    filter: DeliveryFilter & { search: string },
  ): Promise<TextCandidates | undefined>;
  /**
   * What the file takes, without the part of segments whose bodies are gone by now, up to `bodilessUntil`: they are about to be
   * built anew, much smaller.
   */
  bytes(bodilessUntil: number): Promise<number>;
  close(): Promise<void>;
}

const LOOK_MS = 2000;
const REFRESH_LOOKS = 30;
/** The shortest text that has a trigram, in bytes. */
const MIN_BYTES = 3;
const HEAP_MB = 128;

/** The thread indexes what was written since it last ran, whenever that fills a segment; `owns` says whether it is this process that starts it. */
export async function openTextIndex(
  inbox: Database,
  { logger, owns }: { logger: Logger; owns: boolean },
): Promise<TextIndex> {
  const dataDir = dirname(inbox.file);
  const file = join(dataDir, TEXT_INDEX_FILE);
  const latest = inbox.prepare<[], number | null>('select max(position) from delivery').pluck();
  let reader: Database | undefined;
  let indexer: Indexer | undefined;
  let looks = 0;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  async function open(): Promise<Database | undefined> {
    if (reader || isClosed || !existsSync(file)) return reader;
    // Opened for the first time at this very moment, or by a version with another schema: it is not needed yet.
    reader = await openDatabase({ file, migrations: TEXT_INDEX_MIGRATIONS, readonly: true }).catch(
      () => undefined,
    );
    return reader;
  }

  async function indexedUntil(): Promise<number> {
    const db = await open();
    if (!db) return 0;
    return db.read(() => db.prepare<[], number>('select indexed_until from progress').pluck().get() ?? 0);
  }

  /** A database that was replaced by an older copy gives positions again that the index has. */
  async function removeForeign(): Promise<void> {
    const given = inbox
      .prepare<[], number>("select seq from sqlite_sequence where name = 'delivery'")
      .pluck()
      .get();
    const until = await indexedUntil().catch(() => Number.MAX_SAFE_INTEGER);
    if (until <= (given ?? 0)) return;
    await reader?.close();
    reader = undefined;
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
  }

  async function look(): Promise<void> {
    const isDue =
      (await inbox.read(() => latest.get() ?? 0)) - (await indexedUntil()) >= SEGMENT_DOCS ||
      (++looks % REFRESH_LOOKS === 0 && existsSync(file));
    if (isDue && !isClosed) {
      indexer = startIndexer(dataDir);
      await indexer.ended;
      indexer = undefined;
    }
  }

  function lookLater(): void {
    if (isClosed) return;
    timer = setTimeout(() => {
      look()
        .catch((error) =>
          logger.warn('Texts of deliveries could not be indexed; searches scan them', { error }),
        )
        .finally(lookLater);
    }, LOOK_MS).unref();
  }

  if (owns) {
    await removeForeign();
    lookLater();
  }
  return {
    async search(namespaceId, filter) {
      if (Buffer.byteLength(filter.search) < MIN_BYTES) return undefined;
      const db = await open();
      return db?.read(() => textCandidates(db, namespaceId, filter));
    },
    async bytes(bodilessUntil) {
      const db = await open();
      return db ? db.read(() => bytesOf(db, bodilessUntil)) : 0;
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      indexer?.stop();
      await indexer?.ended.catch(() => {});
      await reader?.close();
    },
  };
}

/** To be called inside `db.read`. */
function bytesOf(db: Database, bodilessUntil: number): number {
  const sums = db
    .prepare<[number], { whole: number; kept: number }>(
      `select coalesce(sum(bytes), 0) as whole, coalesce(sum(iif(has_bodies and last <= ?, 0, bytes)), 0) as kept from segment`,
    )
    .get(bodilessUntil)!;
  return sums.whole === 0 ? 0 : Math.round((usedBytes(db) * sums.kept) / sums.whole);
}

interface Indexer {
  stop(): void;
  /** Rejects with what ended it. */
  ended: Promise<void>;
}

function startIndexer(dataDir: string): Indexer {
  const stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: TextIndexStart = { dataDir, stop };
  const worker = new Worker(entryFile('textIndex'), {
    workerData,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  worker.unref();
  return {
    stop() {
      // Idle it keeps no process alive, but its end is waited for.
      worker.ref();
      Atomics.store(stop, 0, 1);
    },
    ended: new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', () => resolve());
    }),
  };
}
