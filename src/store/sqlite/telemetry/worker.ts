import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../../kit/errors/errors.ts';
import { every, systemClock } from '../../../kit/time/clock.ts';
import type { TelemetryStore } from '../../ports/telemetry.ts';
import { answerCall, type WorkerCall } from '../worker-calls.ts';
import { createIngest } from './ingest.ts';
import type { FromWriter, TelemetryWorkerData, ToWriter, WriterData } from './protocol.ts';
import { sqliteTelemetryStore } from './store.ts';

/**
 * Worker that owns a `telemetry.db` connection, for writing or reading, so that SQLite never blocks a
 * service's event loop.
 */

const FLUSH_MS = 100;
const FLUSH_RECORDS = 1000;
const PRUNE_EVERY_MS = 60_000;
const REPORT_EVERY_MS = 10_000;
/** Search may lag on a busy machine: threads that answer requests have priority. */
const NICENESS = 10;

const port = parentPort!;
const data = workerData as TelemetryWorkerData;
if (data.mode === 'write') runWriter(data);
else runReader(data.dataDir);

function lowerPriority(): void {
  // On other systems this would change the priority of the whole process.
  if (process.platform !== 'linux') return;
  try {
    // Keeps a lower priority that the platform was started with; raising it is not permitted.
    if (getPriority(0) < NICENESS) setPriority(0, NICENESS);
  } catch {
    // Some sandboxes forbid it; the thread then keeps its priority.
  }
}

function runWriter({ dataDir, retention }: WriterData): void {
  lowerPriority();
  const ingest = createIngest({ now: systemClock.now });
  const store = storeOf(dataDir);
  let dropped = 0;
  let failure: string | undefined;
  let scheduled = false;
  let writing: Promise<void> = Promise.resolve();
  let pruning = false;
  const send = (message: FromWriter): void => port.postMessage(message);

  function flush(): Promise<void> {
    const batch = ingest.batch();
    if (batch) writing = writing.then(() => write(batch));
    return writing;
  }
  async function write(batch: NonNullable<ReturnType<typeof ingest.batch>>): Promise<void> {
    dropped += batch.counts['logs.dropped'] ?? 0;
    try {
      await (await store()).append(batch);
    } catch (error) {
      dropped += batch.logs.length + batch.events.length;
      failure = messageOf(error);
    }
  }
  function schedule(): void {
    if (ingest.waiting >= FLUSH_RECORDS) void flush();
    else if (!scheduled) {
      scheduled = true;
      systemClock.after(FLUSH_MS, () => {
        scheduled = false;
        void flush();
      });
    }
  }
  function report(): void {
    if (dropped > 0) send({ type: 'dropped', count: dropped, ...(failure === undefined ? {} : { failure }) });
    dropped = 0;
    failure = undefined;
  }
  async function prune(): Promise<void> {
    if (pruning) return;
    pruning = true;
    try {
      while (await pruneOnce(await store(), retention)) await flush();
    } catch (error) {
      failure = messageOf(error);
    }
    pruning = false;
  }

  every(systemClock, PRUNE_EVERY_MS, () => void prune());
  every(systemClock, REPORT_EVERY_MS, report);
  port.on('message', (message: ToWriter) => {
    if (message.type === 'lines') {
      ingest.take(message.service, Buffer.from(message.lines).toString('utf8'));
      schedule();
      void writing.then(() => send({ type: 'taken', bytes: message.lines.byteLength }));
    } else if (message.type === 'lost') ingest.lost(message.service, message.count);
    else if (message.type === 'flush') {
      void flush().then(() => send({ type: 'flushed' }));
    } else void finish();
  });

  async function finish(): Promise<void> {
    await flush();
    report();
    await store()
      .then((opened) => opened.close())
      .catch(() => {});
    send({ type: 'closed' });
    port.close();
  }
  store().then(
    () => void prune(),
    (error: unknown) => {
      failure = messageOf(error);
      dropped++;
      report();
    },
  );
}

/** Opens the file on first use, and retries after a failure: a full disk may be freed. */
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

const DAY_MS = 24 * 3600_000;

function pruneOnce(store: TelemetryStore, retention: WriterData['retention']): Promise<boolean> {
  const now = systemClock.now();
  return store.prune({
    logsBefore: now - retention.logsDays * DAY_MS,
    eventsBefore: now - retention.analyticsDays * DAY_MS,
    maxBytes: retention.telemetryMaxBytes,
  });
}

function runReader(dataDir: string): void {
  const open = storeOf(dataDir);
  port.on('message', async (call: WorkerCall) => {
    port.postMessage(await answerCall(call, open));
  });
}
