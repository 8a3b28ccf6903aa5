import { withoutEvents } from '../../../kit/telemetry/analytics.ts';
import type { LineOutput } from '../../../kit/telemetry/output.ts';
import { systemClock } from '../../../kit/time/clock.ts';

const BLOCK_BYTES = 64 * 1024;
const BLOCK_MS = 50;

export interface ServiceOutputOptions {
  /** Stores log records and analytics events. Receives complete lines. */
  store(lines: Buffer): void;
  /** Prints log records. Receives complete lines. */
  print: LineOutput;
}

/** Output of a service without a supervisor. Lines are stored and printed in blocks. */
export class ServiceOutput implements LineOutput {
  readonly #options: ServiceOutputOptions;
  #lines: string[] = [];
  #bytes = 0;
  #cancelBlock: (() => void) | undefined;

  constructor(options: ServiceOutputOptions) {
    this.#options = options;
  }

  write(line: string): void {
    this.#lines.push(line);
    this.#bytes += line.length;
    if (this.#bytes >= BLOCK_BYTES) this.#pass();
    else this.#cancelBlock ??= systemClock.after(BLOCK_MS, () => this.#pass());
  }

  flush(): void {
    this.#pass();
    this.#options.print.flush();
  }

  #pass(): void {
    this.#cancelBlock?.();
    this.#cancelBlock = undefined;
    if (this.#lines.length === 0) return;
    const block = Buffer.from(this.#lines.join(''));
    this.#lines = [];
    this.#bytes = 0;
    this.#options.store(block);
    const records = withoutEvents(block);
    if (records.length > 0) this.#options.print.write(records.toString('utf8'));
  }
}
