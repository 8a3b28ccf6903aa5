import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../kit/errors/errors.ts';
import { every, systemClock } from '../../kit/time/clock.ts';
import { days } from '../../kit/time/duration.ts';
import type { TelemetryStore } from '../ports/telemetry.ts';
import { sqliteTelemetryStore } from '../sqlite/telemetry/store.ts';
import { lowerThreadPriority } from '../sqlite/thread-priority.ts';
import { answerCall, type WorkerCall } from '../sqlite/worker-calls.ts';
import { type Batch, Ingest } from './ingest.ts';
import type { FromWriter, TelemetryWorkerData, ToWriter, WriterData } from './protocol.ts';

/**
 * Entry point of the worker thread for `telemetry.db`. A worker either writes or reads, so that SQLite never blocks the
 * event loop of a service.
 */

const FLUSH_MS = 100;
const FLUSH_RECORDS = 1000;
const PRUNE_EVERY_MS = 60_000;
const REPORT_EVERY_MS = 10_000;
const port = parentPort!;

/** Writes received records in batches, and deletes old records. */
class WriterThread {
  readonly #retention: WriterData['retention'];
  readonly #ingest = new Ingest({ now: systemClock.now });
  readonly #store: () => Promise<TelemetryStore>;
  #dropped = 0;
  #failure: string | undefined;
  #isScheduled = false;
  #writing: Promise<void> = Promise.resolve();
  #isPruning = false;

  constructor({ dataDir, retention }: WriterData) {
    this.#retention = retention;
    this.#store = storeOf(dataDir);
  }

  run(): void {
    every(systemClock, PRUNE_EVERY_MS, () => void this.#prune());
    every(systemClock, REPORT_EVERY_MS, () => this.#report());
    port.on('message', (message: ToWriter) => this.#receive(message));
    this.#store().then(
      () => void this.#prune(),
      (error: unknown) => {
        this.#failure = messageOf(error);
        this.#dropped++;
        this.#report();
      },
    );
  }

  #receive(message: ToWriter): void {
    if (message.type === 'lines') {
      this.#ingest.take(message.service, Buffer.from(message.lines).toString('utf8'));
      this.#schedule();
      void this.#writing.then(() => send({ type: 'taken', bytes: message.lines.byteLength }));
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

  #flush(): Promise<void> {
    const batch = this.#ingest.batch();
    if (batch) this.#writing = this.#writing.then(() => this.#write(batch));
    return this.#writing;
  }

  async #write(batch: Batch): Promise<void> {
    this.#dropped += batch.counts['logs.dropped'] ?? 0;
    try {
      await (await this.#store()).append(batch);
    } catch (error) {
      this.#dropped += batch.logs.length + batch.events.length;
      this.#failure = messageOf(error);
    }
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

/**
 * Returns a function that opens the file on first use. After a failure, the next call opens the file again, because a
 * full disk might have free space again.
 */
function storeOf(dataDir: string): () => Promise<TelemetryStore> {
  let opened: Promise<TelemetryStore> | undefined;
  return () => {
    opened ??= sqliteTelemetryStore({ dataDir }).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
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
  const open = storeOf(dataDir);
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
