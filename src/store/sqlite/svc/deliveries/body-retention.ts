import { setImmediate as turn } from 'node:timers/promises';
import type { Database } from '../../database.ts';
import type { InboxLog } from '../inbox-log.ts';
import type { DeliveryRows } from './rows.ts';
import { SQL } from './statements.ts';

/** Rows scanned per event-loop turn, which takes a few milliseconds. */
const BATCH_ROWS = 200;

/** Deletes the oldest bodies of finished deliveries. */
export interface BodyRetention {
  /** Position up to which all bodies of ended deliveries are deleted. */
  readonly bodilessUntil: number;
  /** Deletes bodies until `bytes` are freed or `limit` bodies are deleted; returns the number of deleted bodies. */
  drop(bytes: number, limit: number): Promise<number>;
}

/**
 * Continues from the last position, which is stored, so that neither a restart nor a sweep rescans rows
 * without bodies.
 */
export function bodyRetention(db: Database, log: InboxLog, rows: DeliveryRows): BodyRetention {
  const noted = db.prepare<[], number>('select bodiless_until from delivery_progress').pluck();
  let bodilessUntil = noted.get()!;

  /** Scans from `after` in bounded batches; also returns the position reached. */
  async function find(after: number, bytes: number, limit: number) {
    const positions: number[] = [];
    let found = 0;
    for (let from = after; ; ) {
      const batch = await db.read(() => rows.bodies(from, BATCH_ROWS));
      for (const row of batch) {
        from = row.position;
        if (!row.hasBody || !row.hasEnded) continue;
        positions.push(row.position);
        found += row.bytes;
        if (found >= bytes || positions.length === limit) return { positions, until: from };
      }
      if (batch.length < BATCH_ROWS) return { positions, until: from };
      await turn();
    }
  }

  return {
    get bodilessUntil() {
      return bodilessUntil;
    },
    async drop(bytes, limit) {
      let { positions, until } = await find(bodilessUntil, bytes, limit);
      // Some skipped rows may have ended since they were scanned, so the scan starts again from the first row.
      if (positions.length === 0 && bodilessUntil > 0) ({ positions, until } = await find(0, bytes, limit));
      bodilessUntil = until;
      if (positions.length === 0) return 0;
      const which = JSON.stringify(positions);
      await log.commit({
        guarded: false,
        steps: [
          [SQL.dropSmallBodies, [which]],
          [SQL.dropLargeBodies, [which]],
          [SQL.noteBodiless, [until]],
        ],
      });
      return positions.length;
    },
  };
}
