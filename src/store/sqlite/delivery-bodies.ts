import { setImmediate as turn } from 'node:timers/promises';
import type { Database } from './database.ts';
import type { DeliveryRows } from './delivery-rows.ts';
import { SQL } from './delivery-statements.ts';
import type { InboxLog } from './inbox-log.ts';

/** Rows that one turn of the event loop looks at: a few milliseconds. */
const STRETCH_ROWS = 200;

/** Drops the oldest bodies of deliveries that have ended. */
export interface BodyRetention {
  /** Up to this position no delivery that had ended kept its body. */
  readonly bodilessUntil: number;
  /** So many bodies as have that many bytes, and no more than `limit`; returns how many went. */
  drop(bytes: number, limit: number): Promise<number>;
}

/**
 * Looks for bodies from where the last one went, which the database keeps, so that neither a start nor a sweep passes all
 * the rows again whose bodies are gone.
 */
export function bodyRetention(db: Database, log: InboxLog, rows: DeliveryRows): BodyRetention {
  const noted = db.prepare<[], number>('select bodiless_until from delivery_progress').pluck();
  let bodilessUntil = noted.get()!;

  /** From `after` on, in bounded stretches; with the position up to which it has looked. */
  async function find(after: number, bytes: number, limit: number) {
    const positions: number[] = [];
    let found = 0;
    for (let from = after; ; ) {
      const stretch = await db.read(() => rows.bodies(from, STRETCH_ROWS));
      for (const row of stretch) {
        from = row.position;
        if (!row.hasBody || !row.hasEnded) continue;
        positions.push(row.position);
        found += row.bytes;
        if (found >= bytes || positions.length === limit) return { positions, until: from };
      }
      if (stretch.length < STRETCH_ROWS) return { positions, until: from };
      await turn();
    }
  }

  return {
    get bodilessUntil() {
      return bodilessUntil;
    },
    async drop(bytes, limit) {
      let { positions, until } = await find(bodilessUntil, bytes, limit);
      // Some of those passed by had not ended then.
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
