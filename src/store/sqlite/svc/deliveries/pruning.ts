import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes } from '../../../../kit/time/duration.ts';
import type { Database } from '../../database.ts';
import type { Step } from '../committer/protocol.ts';
import type { InboxLog } from '../inbox-log.ts';
import type { DeliveryAge, DeliveryRows } from './rows.ts';
import { SQL } from './statements.ts';

/** Rows scanned per event-loop turn, which takes a few milliseconds. */
const BATCH_ROWS = 500;
/** Maximum number of retained rows that every sweep rescans. More rows are rescanned only at intervals. */
const FEW_PASSED = 10 * BATCH_ROWS;
const RESCAN_MS = minutes(10);

/** Deletes whole records, oldest first, at most `limit` per call; returns their number. */
export interface DeliveryPruning {
  /** Deletes records that were received before a time and do not wait for a handler. */
  old(receivedBefore: number, limit: number): Promise<number>;
  /** Deletes records of ended deliveries of any age. */
  ended(limit: number): Promise<number>;
}

type Verdict = 'goes' | 'stays' | 'ends the search';

/** Progress of one kind of pruning: by age, or for space. */
interface Sweep {
  /** Every row up to this position was retained when it was scanned. */
  until: number;
  /** Number of rows up to `until` that were retained. */
  passed: number;
  /** Time of the next rescan from the start, on the monotonic clock. */
  againAt: number;
}

/**
 * Prunes deliveries from where the last call ended, so that a long backlog of a paused webhook is not rescanned by
 * each call. Rows that have ended since are found by rescanning from the start at intervals.
 */
export function deliveryPruning(
  db: Database,
  log: InboxLog,
  rows: DeliveryRows,
  clock: Pick<Clock, 'monotonic'>,
): DeliveryPruning {
  const newSweep = (): Sweep => ({ until: 0, passed: 0, againAt: 0 });
  const sweeps = { old: newSweep(), ended: newSweep() };

  /** Scans from `after` up to `last`. */
  async function find(after: number, last: number, limit: number, judge: (row: DeliveryAge) => Verdict) {
    const positions: number[] = [];
    let passed = 0;
    for (let until = after; ; ) {
      const batch = await db.read(() => rows.ages(until, last, BATCH_ROWS));
      for (const row of batch) {
        const verdict = judge(row);
        if (verdict === 'ends the search') return { positions, passed, until };
        until = row.position;
        if (verdict === 'stays') passed++;
        else if (positions.push(row.position) === limit) return { positions, passed, until };
      }
      if (batch.length < BATCH_ROWS) return { positions, passed, until };
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
    sweep.passed += found.passed;
    const isDue = sweep.passed <= FEW_PASSED || clock.monotonic() >= sweep.againAt;
    if (removed > 0 || sweep.passed === 0 || !isDue) return removed;
    sweep.againAt = clock.monotonic() + RESCAN_MS;
    const again = await find(0, sweep.until, limit, judge);
    const removedAgain = await remove(again.positions);
    // The next call continues behind the last deleted row.
    Object.assign(sweep, removedAgain > 0 ? { until: again.until, passed: again.passed } : {});
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
