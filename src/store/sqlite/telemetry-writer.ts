import { Worker } from 'node:worker_threads';
import { messageOf } from '../../kit/errors.ts';
import { entryFile } from '../../kit/paths.ts';
import type { FromWriter, TelemetryWorkerData, ToWriter, WriterData } from './telemetry-protocol.ts';

/** Hands lines on to the thread that keeps them. Nothing here waits, and nothing fails the caller. */
export interface TelemetryWriter {
  /** Starts the thread; what was pushed before is written first. */
  start(): void;
  /** Whole lines of one service: log records, and analytics events. */
  push(service: string, lines: Uint8Array): void;
  /** Settles once everything pushed before is in the file, or was given up. */
  flush(): Promise<void>;
  /** Writes what is left and ends the thread. */
  close(): Promise<void>;
}

export interface TelemetryWriterOptions extends Omit<WriterData, 'mode'> {
  /** Told at most every ten seconds how many records were not kept, and why when it is not for their number. */
  onDropped: (count: number, failure: string | undefined) => void;
}

/** What may be on its way to the thread; beyond it lines are dropped, as the disk cannot keep up. */
const MOST_BYTES = 16 * 1024 * 1024;
const CLOSE_DEADLINE_MS = 3000;
/** A batch of records and SQLite's cache need a tenth of it. */
const HEAP_MB = 64;

export function startTelemetryWriter(options: TelemetryWriterOptions): TelemetryWriter {
  const writer = createTelemetryWriter(options);
  writer.start();
  return writer;
}

/** As `startTelemetryWriter`, but without its thread yet: at a start of the platform others need the processors. */
export function createTelemetryWriter({ onDropped, ...data }: TelemetryWriterOptions): TelemetryWriter {
  let worker: Worker | undefined;
  let ended = false;
  let onTheWay = 0;
  /** Lines by their service. */
  let overflow = new Map<string, number>();
  let held: ToWriter[] = [];
  let flushed: Array<() => void> = [];

  function start(): void {
    if (worker || ended) return;
    const started = startTelemetryThread({ mode: 'write', ...data });
    worker = started;
    started.on('message', (message: FromWriter) => {
      if (message.type === 'taken') onTheWay -= message.bytes;
      else if (message.type === 'flushed') flushed.shift()?.();
      else if (message.type === 'dropped') report(message.count, message.failure);
      if (overflow.size > 0 && onTheWay === 0) {
        for (const [service, count] of overflow) tell({ type: 'lost', service, count });
        report(0, 'the disk is too slow');
      }
    });
    started.on('error', (error) => {
      // It is not started again: what ended it would end it again, and the log files have every line.
      ended = true;
      report(0, `the thread that keeps them ended: ${messageOf(error)}`);
    });
    started.on('exit', () => {
      ended = true;
      for (const settle of flushed) settle();
      flushed = [];
    });
    for (const message of held) tell(message);
    held = [];
  }
  function report(count: number, failure: string | undefined): void {
    onDropped(
      [...overflow.values()].reduce((sum, each) => sum + each, count),
      failure,
    );
    overflow = new Map();
  }
  function tell(message: ToWriter): void {
    if (!worker) held.push(message);
    else worker.postMessage(message, message.type === 'lines' ? [message.lines.buffer as ArrayBuffer] : []);
  }
  return {
    start,
    push(service, lines) {
      if (ended) return;
      if (onTheWay + lines.byteLength > MOST_BYTES) {
        let count = overflow.get(service) ?? 0;
        for (const byte of lines) if (byte === 0x0a) count++;
        overflow.set(service, count);
        return;
      }
      onTheWay += lines.byteLength;
      // A copy of its own size: a block is a part of the pipe's buffer, all of which would travel.
      tell({ type: 'lines', service, lines: new Uint8Array(lines) });
    },
    flush() {
      if (ended) return Promise.resolve();
      return new Promise((resolve) => {
        flushed.push(resolve);
        tell({ type: 'flush' });
      });
    },
    async close() {
      if (!worker && held.length > 0) start();
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
        tell({ type: 'close' });
      });
    },
  };
}

/** The thread never keeps the process alive by itself. */
export function startTelemetryThread(data: TelemetryWorkerData): Worker {
  const worker = new Worker(entryFile('telemetry'), {
    workerData: data,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 4 },
  });
  worker.unref();
  return worker;
}
