import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes } from '../../../../kit/time/duration.ts';
import type { Database } from '../../database.ts';
import type { Step } from '../committer/protocol.ts';
import type { InboxLog } from '../inbox-log.ts';
import type { DeliveryAge, DeliveryRows } from './rows.ts';
import { SQL } from './statements.ts';

/** Number of rows that one event-loop turn reads. A turn takes a few milliseconds. */
const BATCH_ROWS = 500;
/**
 * Maximum number of retained rows that each call scans again. A larger number of rows is only scanned again after
 * RESCAN_MS.
 */
const MAX_RESCANNED_ROWS = 10 * BATCH_ROWS;
const RESCAN_MS = minutes(10);

/** Deletes whole deliveries, oldest first, at most `limit` per call. Returns the number of deleted deliveries. */
export interface DeliveryPruning {
  /** Deletes deliveries that were received before a time, except those that wait for their handler. */
  old(receivedBefore: number, limit: number): Promise<number>;
  /** Deletes ended deliveries of any age. */
  ended(limit: number): Promise<number>;
}

type Verdict = 'goes' | 'stays' | 'ends the search';

interface Sweep {
  /** Position of the last scanned row. All rows up to this position were retained when they were scanned. */
  until: number;
  /** Number of retained rows up to `until`. */
  retained: number;
  /** Monotonic time of the next scan that starts at the first row. */
  rescanAt: number;
}

/**
 * Deletes deliveries. Each call starts where the previous call ended. From time to time, a scan starts at the first row
 * to find deliveries that ended later.
 */
export function deliveryPruning(
  db: Database,
  log: InboxLog,
  rows: DeliveryRows,
  clock: Pick<Clock, 'monotonic'>,
): DeliveryPruning {
  const newSweep = (): Sweep => ({ until: 0, retained: 0, rescanAt: 0 });
  const sweeps = { old: newSweep(), ended: newSweep() };

  async function find(after: number, last: number, limit: number, judge: (row: DeliveryAge) => Verdict) {
    const positions: number[] = [];
    let retained = 0;
    for (let until = after; ; ) {
      const batch = await db.read(() => rows.ages(until, last, BATCH_ROWS));
      for (const row of batch) {
        const verdict = judge(row);
        if (verdict === 'ends the search') return { positions, retained, until };
        until = row.position;
        if (verdict === 'stays') retained++;
        else if (positions.push(row.position) === limit) return { positions, retained, until };
      }
      if (batch.length < BATCH_ROWS) return { positions, retained, until };
      await turn();
    }
  }

  async function remove(positions: readonly number[]): Promise<number> {
    if (positions.length === 0) return 0;
    const steps: Step[] = [[SQL.prune, [JSON.stringify(positions)]]];
    return (await log.commit({ guarded: false, steps })).changes;
  }

  async function run(sweep: Sweep, limit: number, judge: (row: DeliveryAge) => Verdict): Promise<number> {
    const found = await find(sweep.until, Number.MAX_SAFE_INTEGER, limit, judge);
    const removed = await remove(found.positions);
    sweep.until = found.until;
    sweep.retained += found.retained;
    const isDue = sweep.retained <= MAX_RESCANNED_ROWS || clock.monotonic() >= sweep.rescanAt;
    if (removed > 0 || sweep.retained === 0 || !isDue) return removed;
    sweep.rescanAt = clock.monotonic() + RESCAN_MS;
    const again = await find(0, sweep.until, limit, judge);
    const removedAgain = await remove(again.positions);
    Object.assign(sweep, removedAgain > 0 ? { until: again.until, retained: again.retained } : {});
    return removedAgain;
  }

  return {
    old: (receivedBefore, limit) =>
      run(sweeps.old, limit, ({ waits, receivedAt }) => {
        if (waits) return 'stays';
        return receivedAt < receivedBefore ? 'goes' : 'ends the search';
      }),
    ended: (limit) => run(sweeps.ended, limit, ({ waits, runs }) => (waits || runs ? 'stays' : 'goes')),
  };
}
