import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../kit/errors/errors.ts';
import { entryFile } from '../../../kit/files/paths.ts';
import type { FromWriter, TelemetryWorkerData, ToWriter, WriterData } from './protocol.ts';

/** Sends lines to the worker that stores them. Never blocks or throws. */
export interface TelemetryWriter {
  /** Starts the thread; it writes earlier lines first. */
  start(): void;
  /** Adds whole lines of one service: log records and analytics events. */
  push(service: string, lines: Uint8Array): void;
  /** Resolves once all earlier lines are in the file or dropped. */
  flush(): Promise<void>;
  /** Writes the remaining lines and ends the thread. */
  close(): Promise<void>;
}

export interface TelemetryWriterOptions extends Omit<WriterData, 'mode'> {
  /** Called at most every ten seconds with the number of dropped records, and the error if there was one. */
  onDropped: (count: number, failure: string | undefined) => void;
}

/** Maximum bytes in flight to the thread; more lines are dropped, as the disk is too slow. */
const MAX_IN_FLIGHT_BYTES = 16 * 1024 * 1024;
const CLOSE_DEADLINE_MS = 3000;
/** A batch of records and SQLite's cache need a tenth of it. */
const HEAP_MB = 64;

export function startTelemetryWriter(options: TelemetryWriterOptions): TelemetryWriter {
  const writer = createTelemetryWriter(options);
  writer.start();
  return writer;
}

/**
 * Like `startTelemetryWriter`, but without starting the thread: during the platform's start other work has
 * priority.
 */
export function createTelemetryWriter({ onDropped, ...data }: TelemetryWriterOptions): TelemetryWriter {
  let worker: Worker | undefined;
  let ended = false;
  let inFlightBytes = 0;
  /** Dropped lines by service. */
  let overflow = new Map<string, number>();
  let pending: ToWriter[] = [];
  let flushed: Array<() => void> = [];

  function start(): void {
    if (worker || ended) return;
    const started = startTelemetryThread({ mode: 'write', ...data });
    worker = started;
    started.on('message', (message: FromWriter) => {
      if (message.type === 'taken') inFlightBytes -= message.bytes;
      else if (message.type === 'flushed') flushed.shift()?.();
      else if (message.type === 'dropped') report(message.count, message.failure);
      if (overflow.size > 0 && inFlightBytes === 0) {
        for (const [service, count] of overflow) send({ type: 'lost', service, count });
        report(0, 'the disk is too slow');
      }
    });
    started.on('error', (error) => {
      // Not restarted: the same error would end it again, and the log files have every line.
      ended = true;
      report(0, `the thread that keeps them ended: ${messageOf(error)}`);
    });
    started.on('exit', () => {
      ended = true;
      for (const settle of flushed) settle();
      flushed = [];
    });
    for (const message of pending) send(message);
    pending = [];
  }
  function report(count: number, failure: string | undefined): void {
    onDropped(
      [...overflow.values()].reduce((sum, each) => sum + each, count),
      failure,
    );
    overflow = new Map();
  }
  function send(message: ToWriter): void {
    if (!worker) pending.push(message);
    else worker.postMessage(message, message.type === 'lines' ? [message.lines.buffer as ArrayBuffer] : []);
  }
  return {
    start,
    push(service, lines) {
      if (ended) return;
      if (inFlightBytes + lines.byteLength > MAX_IN_FLIGHT_BYTES) {
        let count = overflow.get(service) ?? 0;
        for (const byte of lines) if (byte === 0x0a) count++;
        overflow.set(service, count);
        return;
      }
      inFlightBytes += lines.byteLength;
      // Copies the block: transferring it would transfer the pipe's whole buffer.
      send({ type: 'lines', service, lines: new Uint8Array(lines) });
    },
    flush() {
      if (ended) return Promise.resolve();
      return new Promise((resolve) => {
        flushed.push(resolve);
        send({ type: 'flush' });
      });
    },
    async close() {
      if (!worker && pending.length > 0) start();
      const closing = worker;
      if (ended || !closing) {
        ended = true;
        return;
      }
      closing.ref();
      await new Promise<void>((resolve) => {
        const deadline = setTimeout(() => void closing.terminate(), CLOSE_DEADLINE_MS);
        closing.once('exit', () => {
          clearTimeout(deadline);
          resolve();
        });
        send({ type: 'close' });
      });
    },
  };
}

/** Starts the worker, unreferenced: it never keeps the process alive. */
export function startTelemetryThread(data: TelemetryWorkerData): Worker {
  const worker = new Worker(entryFile('telemetry'), {
    workerData: data,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 4 },
  });
  worker.unref();
  return worker;
}
