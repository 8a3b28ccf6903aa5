import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { entryFile } from '../../../../kit/files/paths.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { DeliveryFilter } from '../../../ports/index.ts';
import { type Database, openDatabase } from '../../database.ts';
import { usedBytes } from '../../used-bytes.ts';
import { SEGMENT_DOCS } from './buckets.ts';
import type { TextIndexStart } from './protocol.ts';
import { TEXT_INDEX_FILE, TEXT_INDEX_MIGRATIONS } from './schema.ts';
import { type TextCandidates, textCandidates } from './search.ts';

/** Full-text index of deliveries. */
export interface TextIndex {
  /** Undefined when nothing is indexed or the text is too short; the caller then scans rows. */
  search(
    namespaceId: string,
    filter: DeliveryFilter & { search: string },
  ): Promise<TextCandidates | undefined>;
  /**
   * Size of the file, excluding segments whose bodies up to `bodilessUntil` were deleted: their rebuild will
   * be much smaller.
   */
  bytes(bodilessUntil: number): Promise<number>;
  close(): Promise<void>;
}

const POLL_MS = 2000;
const REFRESH_POLLS = 30;
/** Shortest searchable text, in bytes: one trigram. */
const MIN_BYTES = 3;
const HEAP_MB = 128;

/** A worker indexes new deliveries whenever they fill a segment. `owns`: this process starts the worker. */
export async function openTextIndex(
  inbox: Database,
  { logger, owns }: { logger: Logger; owns: boolean },
): Promise<TextIndex> {
  const dataDir = dirname(inbox.file);
  const file = join(dataDir, TEXT_INDEX_FILE);
  const latest = inbox.prepare<[], number | null>('select max(position) from delivery').pluck();
  let reader: Database | undefined;
  let indexer: Indexer | undefined;
  let polls = 0;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  async function open(): Promise<Database | undefined> {
    if (reader || isClosed || !existsSync(file)) return reader;
    // The file is just being created, or has another schema: search works without it.
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

  /** A `svc.db` restored from an older copy reuses positions that the index already has. */
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

  async function poll(): Promise<void> {
    const isDue =
      (await inbox.read(() => latest.get() ?? 0)) - (await indexedUntil()) >= SEGMENT_DOCS ||
      (++polls % REFRESH_POLLS === 0 && existsSync(file));
    if (isDue && !isClosed) {
      indexer = startIndexer(dataDir);
      await indexer.ended;
      indexer = undefined;
    }
  }

  function schedulePoll(): void {
    if (isClosed) return;
    timer = setTimeout(() => {
      poll()
        .catch((error) =>
          logger.warn('Texts of deliveries could not be indexed; searches scan them', { error }),
        )
        .finally(schedulePoll);
    }, POLL_MS).unref();
  }

  if (owns) {
    await removeForeign();
    schedulePoll();
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

/** Call it inside `db.read`. */
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
  /** Rejects with the error that ended it. */
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
      // Unreferenced while it works, but `close` waits for its end.
      worker.ref();
      Atomics.store(stop, 0, 1);
    },
    ended: new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', () => resolve());
    }),
  };
}
