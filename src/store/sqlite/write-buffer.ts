import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../kit/logger.ts';
import type { DeliveryEnd, NewDelivery } from '../ports/index.ts';

export interface Note {
  delivery: NewDelivery;
  end: DeliveryEnd;
}

export interface NotebookDeps {
  write(notes: Note[]): Promise<void>;
  clock: Clock;
  logger: Logger;
}

export interface Notebook {
  add(note: Note): void;
  /** Resolves when all earlier notes are written or dropped. */
  flush(): Promise<void>;
}

const FLUSH_MS = 50;
const FLUSH_COUNT = 200;
/** Memory bounds during a flood of refused deliveries; further notes are counted and dropped. */
const MOST_NOTES = 2000;
const MOST_BYTES = 8 * 1024 * 1024;
/** Approximate size of a note's other columns. */
const NOTE_BYTES = 500;

/**
 * Buffers notes and writes them in batches, so that refused deliveries neither wait for the disk nor cost a
 * commit each.
 */
export function createNotebook({ write, clock, logger }: NotebookDeps): Notebook {
  let notes: Note[] = [];
  // Counts notes until they are on disk: a slow disk must not let the queue grow.
  let held = { count: 0, bytes: 0 };
  let dropped = 0;
  let scheduled = false;
  let writing: Promise<void> = Promise.resolve();

  function flush(): Promise<void> {
    if (notes.length > 0) {
      const batch = notes;
      notes = [];
      writing = writing.then(() => writeDown(batch));
    }
    return writing;
  }

  async function writeDown(batch: Note[]): Promise<void> {
    try {
      await write(batch);
    } catch (error) {
      dropped += batch.length;
      logger.error('Records of refused deliveries could not be written', { error });
    }
    for (const note of batch) held = { count: held.count - 1, bytes: held.bytes - sizeOf(note) };
    report();
  }

  function report(): void {
    if (dropped === 0) return;
    logger.diagnostic({
      domain: 'webhooks',
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
    if (notes.length >= FLUSH_COUNT) void flush();
    else if (!scheduled) {
      scheduled = true;
      clock.after(FLUSH_MS, () => {
        scheduled = false;
        void flush();
      });
    }
  }

  return {
    add(note) {
      const size = sizeOf(note);
      if (held.count >= MOST_NOTES || held.bytes + size > MOST_BYTES) {
        dropped++;
        return;
      }
      held = { count: held.count + 1, bytes: held.bytes + size };
      notes.push(note);
      schedule();
    },
    flush,
  };
}

function sizeOf({ delivery: { body, headers }, end: { steps } }: Note): number {
  return NOTE_BYTES + (body?.byteLength ?? 0) + 2 * (headers.length + steps.length);
}
