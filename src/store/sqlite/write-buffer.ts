import type { Logger } from '../../kit/telemetry/logger.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type { DeliveryEnd, NewDelivery } from '../ports/index.ts';

export interface BufferedDelivery {
  delivery: NewDelivery;
  end: DeliveryEnd;
}

export interface WriteBufferDeps {
  write(deliveries: BufferedDelivery[]): Promise<void>;
  clock: Clock;
  logger: Logger;
}

export interface WriteBuffer {
  add(delivery: BufferedDelivery): void;
  /** Resolves when all earlier notes are written or dropped. */
  flush(): Promise<void>;
}

const FLUSH_MS = 50;
const FLUSH_COUNT = 200;
/** Memory bounds during a flood of refused deliveries; further entries are counted and dropped. */
const MAX_DELIVERIES = 2000;
const MAX_BYTES = 8 * 1024 * 1024;
/** Approximate size of a note's other columns. */
const RECORD_BYTES = 500;

/**
 * Buffers notes and writes them in batches, so that refused deliveries neither wait for the disk nor cost a
 * commit each.
 */
export function createWriteBuffer({ write, clock, logger }: WriteBufferDeps): WriteBuffer {
  let deliveries: BufferedDelivery[] = [];
  // Counts entries until they are on disk, so that a slow disk does not let the queue grow.
  let held = { count: 0, bytes: 0 };
  let dropped = 0;
  let scheduled = false;
  let writing: Promise<void> = Promise.resolve();

  function flush(): Promise<void> {
    if (deliveries.length > 0) {
      const batch = deliveries;
      deliveries = [];
      writing = writing.then(() => writeBatch(batch));
    }
    return writing;
  }

  async function writeBatch(batch: BufferedDelivery[]): Promise<void> {
    try {
      await write(batch);
    } catch (error) {
      dropped += batch.length;
      logger.error('Records of refused deliveries could not be written', { error });
    }
    for (const delivery of batch) held = { count: held.count - 1, bytes: held.bytes - sizeOf(delivery) };
    report();
  }

  function report(): void {
    if (dropped === 0) return;
    logger.diagnostic({
      domain: 'webhook',
      event: 'delivery-notes-dropped',
      level: 'warn',
      reasonCode: 'STORE_PRESSURE',
      message: `${dropped} refused deliveries left no record`,
      outcome: 'degraded',
      evidence: { dropped },
    });
    dropped = 0;
  }

  function schedule(): void {
    if (deliveries.length >= FLUSH_COUNT) void flush();
    else if (!scheduled) {
      scheduled = true;
      clock.after(FLUSH_MS, () => {
        scheduled = false;
        void flush();
      });
    }
  }

  return {
    add(delivery) {
      const size = sizeOf(delivery);
      if (held.count >= MAX_DELIVERIES || held.bytes + size > MAX_BYTES) {
        dropped++;
        return;
      }
      held = { count: held.count + 1, bytes: held.bytes + size };
      deliveries.push(delivery);
      schedule();
    },
    flush,
  };
}

function sizeOf({ delivery: { body, headers }, end: { steps } }: BufferedDelivery): number {
  return RECORD_BYTES + (body?.byteLength ?? 0) + 2 * (headers.length + steps.length);
}
