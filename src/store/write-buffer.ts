import type { Logger } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { DeliveryEnd, NewDelivery } from './ports/index.ts';

export interface BufferedDelivery {
  delivery: NewDelivery;
  end: DeliveryEnd;
}

export interface WriteBufferDeps {
  write(deliveries: BufferedDelivery[]): Promise<void>;
  clock: Clock;
  logger: Logger;
}

const FLUSH_MS = 50;
const FLUSH_COUNT = 200;
/**
 * Maximum number of buffered deliveries, which limits memory during a flood. Further deliveries are counted, but not
 * recorded.
 */
const MAX_DELIVERIES = 2000;
const MAX_BYTES = 8 * 1024 * 1024;
/** Approximate size of a delivery record without body, headers and steps. */
const RECORD_BYTES = 500;

/**
 * Buffers records of refused deliveries. Writes the records in batches, so that a flood of deliveries needs few
 * commits.
 */
export class WriteBuffer {
  readonly #deps: WriteBufferDeps;
  #deliveries: BufferedDelivery[] = [];
  // Count and size of the records that are not on disk yet. Records in flight are included, so that a slow disk cannot
  // make the buffer exceed its limits.
  #held = { count: 0, bytes: 0 };
  #dropped = 0;
  #isScheduled = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: WriteBufferDeps) {
    this.#deps = deps;
  }

  add(delivery: BufferedDelivery): void {
    const size = sizeOf(delivery);
    if (this.#held.count >= MAX_DELIVERIES || this.#held.bytes + size > MAX_BYTES) {
      this.#dropped++;
      return;
    }
    this.#held.count++;
    this.#held.bytes += size;
    this.#deliveries.push(delivery);
    this.#schedule();
  }

  /** Resolves when all records added before this call are written or dropped. */
  flush(): Promise<void> {
    if (this.#deliveries.length > 0) {
      const batch = this.#deliveries;
      this.#deliveries = [];
      this.#writing = this.#writing.then(() => this.#write(batch));
    }
    return this.#writing;
  }

  async #write(batch: BufferedDelivery[]): Promise<void> {
    try {
      await this.#deps.write(batch);
    } catch (error) {
      this.#dropped += batch.length;
      this.#deps.logger.error('Records of refused deliveries could not be written', { error });
    }
    for (const delivery of batch) {
      this.#held.count--;
      this.#held.bytes -= sizeOf(delivery);
    }
    this.#report();
  }

  #report(): void {
    if (this.#dropped === 0) return;
    this.#deps.logger.diagnostic({
      domain: 'webhook',
      event: 'delivery-notes-dropped',
      level: 'warn',
      reasonCode: 'STORE_PRESSURE',
      message: `${this.#dropped} refused deliveries were not recorded`,
      outcome: 'degraded',
      evidence: { dropped: this.#dropped },
    });
    this.#dropped = 0;
  }

  #schedule(): void {
    if (this.#deliveries.length >= FLUSH_COUNT) void this.flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      this.#deps.clock.after(FLUSH_MS, () => {
        this.#isScheduled = false;
        void this.flush();
      });
    }
  }
}

function sizeOf({ delivery: { body, headers }, end: { steps } }: BufferedDelivery): number {
  return RECORD_BYTES + (body?.byteLength ?? 0) + 2 * (headers.length + steps.length);
}
