import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, messageOf } from '../../kit/errors/errors.ts';
import { every, systemClock } from '../../kit/time/clock.ts';
import { days } from '../../kit/time/duration.ts';
import type { TelemetryStore } from '../ports/telemetry.ts';
import { lowerThreadPriority } from '../sqlite/thread-priority.ts';
import { answerCall, type WorkerCall } from '../sqlite/worker-calls.ts';
import { Backlog, type Pending } from './backlog.ts';
import { Ingest } from './ingest.ts';
import { openTelemetryStore } from './open.ts';
import { type Opener, opener } from './opener.ts';
import type { FromWriter, TelemetryWorkerData, ToWriter, WriterData } from './protocol.ts';

/**
 * Entry point of the worker threads that write telemetry or read `telemetry.db`. On these threads, parsing and SQLite
 * do not block the event loop of a service.
 */

const FLUSH_MS = 100;
const FLUSH_RECORDS = 1000;
const PRUNE_EVERY_MS = 60_000;
const REPORT_EVERY_MS = 10_000;
const RETRY_MS = 500;
/** Limit of lines that wait while PostgreSQL is away. Parsed records need several times as much memory. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
const port = parentPort!;

/** Writes received records in batches, and deletes old records. */
class WriterThread {
  readonly #retention: WriterData['retention'];
  readonly #ingest = new Ingest({ now: systemClock.now });
  readonly #store: Opener<TelemetryStore>;
  readonly #backlog: Backlog;
  /**
   * Whether a failed batch is stored again later. True for PostgreSQL, which can become reachable again. With a file,
   * the records are dropped at once, for example when the disk is full.
   */
  readonly #retries: boolean;
  /** Size of the lines that are not in a batch yet. */
  #bytes = 0;
  #dropped = 0;
  /** Dropped log records that were reported before, and that the next batch counts again to store their number. */
  #counted = 0;
  #failure: string | undefined;
  #isScheduled = false;
  #isWriting = false;
  #isPruning = false;
  readonly #closing = new AbortController();

  constructor({ dataDir, postgresUrl, node, retention }: WriterData) {
    this.#retention = retention;
    this.#store = opener(() => openTelemetryStore({ dataDir, postgresUrl, node }));
    this.#retries = postgresUrl !== null;
    this.#backlog = new Backlog(this.#retries ? MAX_WAITING_BYTES : Number.POSITIVE_INFINITY);
  }

  run(): void {
    every(systemClock, PRUNE_EVERY_MS, () => void this.#prune());
    every(systemClock, REPORT_EVERY_MS, () => this.#report());
    port.on('message', (message: ToWriter) => this.#receive(message));
    this.#store().then(
      () => void this.#prune(),
      (error: unknown) => {
        this.#failure = messageOf(error);
        if (this.#retries) return;
        this.#dropped++;
        this.#report();
      },
    );
  }

  #receive(message: ToWriter): void {
    if (message.type === 'lines') {
      this.#ingest.take(message.service, Buffer.from(message.lines).toString('utf8'));
      this.#bytes += message.lines.byteLength;
      this.#schedule();
    } else if (message.type === 'lost') this.#ingest.lost(message.service, message.count);
    else if (message.type === 'flush') {
      void this.#flush().then(() => send({ type: 'flushed' }));
    } else void this.#finish();
  }

  #schedule(): void {
    if (this.#ingest.waiting >= FLUSH_RECORDS) void this.#flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      systemClock.after(FLUSH_MS, () => {
        this.#isScheduled = false;
        void this.#flush();
      });
    }
  }

  /** Adds the ingested records to the backlog. Resolves when they are stored or dropped. */
  #flush(): Promise<void> {
    const batch = this.#ingest.batch();
    const bytes = this.#bytes;
    this.#bytes = 0;
    if (batch) {
      this.#dropped += (batch.counts['logs.dropped'] ?? 0) - this.#counted;
      this.#counted = 0;
      for (const dropped of this.#backlog.add(batch, bytes)) this.#drop(dropped);
      void this.#writeAll();
    }
    const settled = this.#backlog.settled();
    if (bytes > 0) void settled.then(() => send({ type: 'taken', bytes }));
    return settled;
  }

  async #writeAll(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    for (let first = this.#backlog.first; first; first = this.#backlog.first) await this.#write(first);
    this.#isWriting = false;
  }

  async #write(pending: Pending): Promise<void> {
    try {
      await (await this.#store()).append(pending.batch);
    } catch (error) {
      this.#failure = messageOf(error);
      const { signal } = this.#closing;
      if (this.#retries && codeOf(error) === 'STORE_ERROR' && !signal.aborted) {
        await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
        return;
      }
      this.#drop(pending);
    }
    this.#backlog.remove();
  }

  /** Counts the records of a batch as dropped. The counts are stored with the next batch. */
  #drop({ batch }: Pending): void {
    this.#dropped += batch.logs.length + batch.events.length;
    if (this.#retries) this.#counted += this.#ingest.dropped(batch);
  }

  #report(): void {
    const failure = this.#failure;
    if (this.#dropped > 0)
      send({ type: 'dropped', count: this.#dropped, ...(failure === undefined ? {} : { failure }) });
    this.#dropped = 0;
    this.#failure = undefined;
  }

  async #prune(): Promise<void> {
    if (this.#isPruning) return;
    this.#isPruning = true;
    try {
      while (await pruneOnce(await this.#store(), this.#retention)) await this.#flush();
    } catch (error) {
      this.#failure = messageOf(error);
    }
    this.#isPruning = false;
  }

  async #finish(): Promise<void> {
    this.#closing.abort();
    await this.#flush();
    this.#report();
    await this.#store()
      .then((opened) => opened.close())
      .catch(() => {});
    send({ type: 'closed' });
    port.close();
  }
}

function send(message: FromWriter): void {
  port.postMessage(message);
}

function pruneOnce(store: TelemetryStore, retention: WriterData['retention']): Promise<boolean> {
  const now = systemClock.now();
  return store.prune({
    logsBefore: now - days(retention.logsDays),
    eventsBefore: now - days(retention.analyticsDays),
    maxBytes: retention.telemetryMaxBytes,
  });
}

function runReader(dataDir: string): void {
  const open = opener(() => openTelemetryStore({ dataDir, postgresUrl: null }));
  port.on('message', async (call: WorkerCall) => {
    port.postMessage(await answerCall(call, open));
  });
}

const data = workerData as TelemetryWorkerData;
if (data.mode === 'write') {
  // The lower priority leaves CPU time to threads that serve requests. On a busy machine, telemetry is stored with a
  // delay.
  lowerThreadPriority();
  new WriterThread(data).run();
} else runReader(data.dataDir);
