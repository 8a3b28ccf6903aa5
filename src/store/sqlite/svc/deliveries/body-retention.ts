import { setImmediate as turn } from 'node:timers/promises';
import type { Database } from '../../database.ts';
import type { InboxLog } from '../inbox-log.ts';
import type { DeliveryRows } from './rows.ts';
import { SQL } from './statements.ts';

/** Number of rows that one event-loop turn reads. A turn takes a few milliseconds. */
const BATCH_ROWS = 200;

export interface BodyRetention {
  /** Position up to which the bodies of all ended deliveries have been deleted. */
  readonly bodilessUntil: number;
  /**
   * Deletes the oldest bodies of ended deliveries until `bytes` are freed or `limit` is reached. Returns the number of
   * deleted bodies.
   */
  drop(bytes: number, limit: number): Promise<number>;
}

/**
 * Deletes bodies. Each call continues at the last position of the previous call. The position is stored in the database
 * to survive restarts.
 */
export function bodyRetention(db: Database, log: InboxLog, rows: DeliveryRows): BodyRetention {
  const noted = db.prepare<[], number>('select bodiless_until from delivery_progress').pluck();
  let bodilessUntil = noted.get()!;

  /**
   * Returns the positions of the bodies to delete, and the last scanned position. Scans rows after `after` until
   * `bytes` or `limit` is reached.
   */
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
      // If the scan finds no bodies, a second scan starts at the first row, because deliveries that an earlier scan
      // skipped might have ended.
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
