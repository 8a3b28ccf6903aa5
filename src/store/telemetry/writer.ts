import { Worker } from 'node:worker_threads';
import { messageOf } from '../../kit/errors/errors.ts';
import { entryFile } from '../../kit/files/paths.ts';
import type { FromWriter, TelemetryWorkerData, ToWriter, WriterData } from './protocol.ts';

export interface TelemetryWriterOptions extends Omit<WriterData, 'mode'> {
  /**
   * Callback that is called at most every ten seconds with the number of dropped records. `failure` is the error
   * message if an error was the cause.
   */
  onDropped: (count: number, failure: string | undefined) => void;
}

/**
 * Maximum number of bytes that were sent to the thread but are not stored yet. If the disk is too slow, further lines
 * are dropped. While PostgreSQL is away, the thread drops the oldest lines earlier.
 */
const MAX_IN_FLIGHT_BYTES = 16 * 1024 * 1024;
const CLOSE_DEADLINE_MS = 3000;
/** Heap limit of the thread, which normally uses about a tenth of it. */
const HEAP_MB = 64;
/** Heap limit with PostgreSQL, where records wait while the server is away. */
const POSTGRES_HEAP_MB = 128;

/** Sends lines to the thread that stores them. No method blocks or throws. */
export class TelemetryWriter {
  readonly #data: Omit<WriterData, 'mode'>;
  readonly #onDropped: TelemetryWriterOptions['onDropped'];
  #worker: Worker | undefined;
  #hasEnded = false;
  #inFlightBytes = 0;
  #overflow = new Map<string, number>();
  #pending: ToWriter[] = [];
  #flushed: Array<() => void> = [];

  /** Creates the writer without its thread. Call `start` after the more urgent work of the platform's startup. */
  constructor({ onDropped, ...data }: TelemetryWriterOptions) {
    this.#data = data;
    this.#onDropped = onDropped;
  }

  /** Starts the thread. Lines that were pushed before the start are stored first. */
  start(): void {
    if (this.#worker || this.#hasEnded) return;
    this.#worker = startTelemetryThread({ mode: 'write', ...this.#data });
    this.#worker.on('message', (message: FromWriter) => this.#receive(message));
    this.#worker.on('error', (error) => {
      // The thread is not restarted, because the same error would probably end the thread again. The log files still
      // contain every line.
      this.#hasEnded = true;
      this.#report(0, `the telemetry thread ended: ${messageOf(error)}`);
    });
    this.#worker.on('exit', () => {
      this.#hasEnded = true;
      for (const settle of this.#flushed) settle();
      this.#flushed = [];
    });
    for (const message of this.#pending) this.#send(message);
    this.#pending = [];
  }

  /** Adds complete lines of one service: log records and analytics events. */
  push(service: string, lines: Uint8Array): void {
    if (this.#hasEnded) return;
    if (this.#inFlightBytes + lines.byteLength > MAX_IN_FLIGHT_BYTES) {
      let count = this.#overflow.get(service) ?? 0;
      for (const byte of lines) if (byte === 0x0a) count++;
      this.#overflow.set(service, count);
      return;
    }
    this.#inFlightBytes += lines.byteLength;
    // The lines are copied, because transferring them would detach the whole buffer of the pipe.
    this.#send({ type: 'lines', service, lines: new Uint8Array(lines) });
  }

  /** Resolves once all lines pushed before this call are stored or dropped. */
  flush(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve();
    return new Promise((resolve) => {
      this.#flushed.push(resolve);
      this.#send({ type: 'flush' });
    });
  }

  /** Stores the remaining lines and ends the thread. */
  async close(): Promise<void> {
    if (!this.#worker && this.#pending.length > 0) this.start();
    const closing = this.#worker;
    if (this.#hasEnded || !closing) {
      this.#hasEnded = true;
      return;
    }
    closing.ref();
    await new Promise<void>((resolve) => {
      const deadline = setTimeout(() => void closing.terminate(), CLOSE_DEADLINE_MS);
      closing.once('exit', () => {
        clearTimeout(deadline);
        resolve();
      });
      this.#send({ type: 'close' });
    });
  }

  #receive(message: FromWriter): void {
    if (message.type === 'taken') this.#inFlightBytes -= message.bytes;
    else if (message.type === 'flushed') this.#flushed.shift()?.();
    else if (message.type === 'dropped') this.#report(message.count, message.failure);
    if (this.#overflow.size > 0 && this.#inFlightBytes === 0) {
      for (const [service, count] of this.#overflow) this.#send({ type: 'lost', service, count });
      this.#report(0, 'the disk is too slow');
    }
  }

  #report(count: number, failure: string | undefined): void {
    const total = [...this.#overflow.values()].reduce((sum, each) => sum + each, count);
    this.#onDropped(total, failure);
    this.#overflow = new Map();
  }

  #send(message: ToWriter): void {
    if (!this.#worker) this.#pending.push(message);
    else
      this.#worker.postMessage(
        message,
        message.type === 'lines' ? [message.lines.buffer as ArrayBuffer] : [],
      );
  }
}

export function startTelemetryWriter(options: TelemetryWriterOptions): TelemetryWriter {
  const writer = new TelemetryWriter(options);
  writer.start();
  return writer;
}

/** Starts the worker thread. The thread does not keep the process alive. */
export function startTelemetryThread(data: TelemetryWorkerData): Worker {
  const heapMb = data.mode === 'write' && data.postgresUrl !== null ? POSTGRES_HEAP_MB : HEAP_MB;
  const worker = new Worker(entryFile('telemetry'), {
    workerData: data,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 4 },
  });
  worker.unref();
  return worker;
}
