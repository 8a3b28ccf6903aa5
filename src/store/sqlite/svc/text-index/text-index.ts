import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { entryFile } from '../../../../kit/files/paths.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { type Database, openDatabase } from '../../database.ts';
import { usedBytes } from '../../used-bytes.ts';
import { SEGMENT_DOCS } from './buckets.ts';
import type { TextIndexStart } from './protocol.ts';
import { TEXT_INDEX_FILE, TEXT_INDEX_MIGRATIONS } from './schema.ts';
import { type IndexedFilter, TextCandidates } from './search.ts';

const POLL_MS = 2000;
const REFRESH_POLLS = 30;
/** Minimum length of a search text in bytes. The index needs at least one trigram of three bytes. */
const MIN_BYTES = 3;
const HEAP_MB = 128;

/** Text index of deliveries. A worker indexes new deliveries as soon as they fill a segment. */
export class TextIndex {
  readonly #inbox: Database;
  readonly #logger: Logger;
  readonly #dataDir: string;
  readonly #file: string;
  readonly #latest: () => number;
  #reader: Database | undefined;
  #indexer: Indexer | undefined;
  #polls = 0;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  private constructor(inbox: Database, logger: Logger) {
    this.#inbox = inbox;
    this.#logger = logger;
    this.#dataDir = dirname(inbox.file);
    this.#file = join(this.#dataDir, TEXT_INDEX_FILE);
    const latest = inbox.prepare<[], number | null>('select max(position) from delivery').pluck();
    this.#latest = () => latest.get() ?? 0;
  }

  /** Opens the index. If `owns` is true, this process also runs the worker that updates the index. */
  static async open(
    inbox: Database,
    { logger, owns }: { logger: Logger; owns: boolean },
  ): Promise<TextIndex> {
    const index = new TextIndex(inbox, logger);
    if (owns) {
      await index.#removeForeign();
      index.#schedulePoll();
    }
    return index;
  }

  /**
   * Returns the deliveries that might match a search. Returns undefined if the search text is too short or the index
   * cannot be opened. The caller must then scan rows.
   */
  async search(namespaceId: string, filter: IndexedFilter): Promise<TextCandidates | undefined> {
    if (!('traceId' in filter) && Buffer.byteLength(filter.search) < MIN_BYTES) return undefined;
    const db = await this.#openReader();
    return db?.read(() => new TextCandidates(db, namespaceId, filter));
  }

  /**
   * Returns the size of the index in bytes. Leaves out segments whose bodies were deleted, because the worker rebuilds
   * these segments much smaller.
   */
  async bytes(bodilessUntil: number): Promise<number> {
    const db = await this.#openReader();
    return db ? db.read(() => bytesOf(db, bodilessUntil)) : 0;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#indexer?.stop();
    await this.#indexer?.ended.catch(() => {});
    await this.#reader?.close();
  }

  async #openReader(): Promise<Database | undefined> {
    if (this.#reader || this.#isClosed || !existsSync(this.#file)) return this.#reader;
    // Opening fails while another process creates the file, or if the file has another schema. Searches scan rows until
    // opening succeeds.
    this.#reader = await openDatabase({
      file: this.#file,
      migrations: TEXT_INDEX_MIGRATIONS,
      readonly: true,
    }).catch(() => undefined);
    return this.#reader;
  }

  async #indexedUntil(): Promise<number> {
    const db = await this.#openReader();
    if (!db) return 0;
    return db.read(() => db.prepare<[], number>('select indexed_until from progress').pluck().get() ?? 0);
  }

  /**
   * Deletes an index that was built from another `svc.db`. After a restore, new deliveries could get positions that the
   * index already contains.
   */
  async #removeForeign(): Promise<void> {
    const given = this.#inbox
      .prepare<[], number>("select seq from sqlite_sequence where name = 'delivery'")
      .pluck()
      .get();
    const until = await this.#indexedUntil().catch(() => Number.MAX_SAFE_INTEGER);
    if (until <= (given ?? 0)) return;
    await this.#reader?.close();
    this.#reader = undefined;
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${this.#file}${suffix}`, { force: true });
  }

  async #poll(): Promise<void> {
    const isDue =
      (await this.#inbox.read(this.#latest)) - (await this.#indexedUntil()) >= SEGMENT_DOCS ||
      (++this.#polls % REFRESH_POLLS === 0 && existsSync(this.#file));
    if (isDue && !this.#isClosed) {
      this.#indexer = startIndexer(this.#dataDir);
      await this.#indexer.ended;
      this.#indexer = undefined;
    }
  }

  #schedulePoll(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#poll()
        .catch((error) =>
          this.#logger.warn(
            'The text index of deliveries could not be updated; searches scan the deliveries',
            { error },
          ),
        )
        .finally(() => this.#schedulePoll());
    }, POLL_MS).unref();
  }
}

/**
 * Returns the estimated number of bytes in the file that belong to segments that need no rebuild. Must run inside
 * `db.read`.
 */
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
  /** Resolves when the worker has ended. Rejects with the error that ended the worker. */
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
      // `close` waits for the end of the worker, so the worker must keep the process alive.
      worker.ref();
      Atomics.store(stop, 0, 1);
    },
    ended: new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', () => resolve());
    }),
  };
}
