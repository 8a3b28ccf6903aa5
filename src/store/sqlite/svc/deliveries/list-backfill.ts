import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Database } from '../../database.ts';
import type { InboxLog } from '../inbox-log.ts';
import { SQL } from './statements.ts';

/** Number of rows per transaction. A transaction of this size locks the database for about ten milliseconds. */
const BATCH_ROWS = 1000;
const PAUSE_MS = 5;
const RETRY_MS = 1000;

/**
 * Adds deliveries of earlier versions to the list tables in the background, newest first. The returned function stops
 * the backfill.
 */
export function startListBackfill(db: Database, log: InboxLog, logger: Logger): () => Promise<void> {
  const listedFrom = db.prepare<[], number>('select listed_from from delivery_progress').pluck();
  /**
   * Selects the start of a batch with a fixed number of rows. A fixed range of positions would vary in size, because
   * deleted deliveries leave gaps.
   */
  const batchBefore = db
    .prepare<[number], number | null>(
      `select min(position) from (select position from delivery where position < ? order by position desc limit ${BATCH_ROWS})`,
    )
    .pluck();
  const stopped = new AbortController();

  async function step(): Promise<boolean> {
    const end = await db.read(() => listedFrom.get()!);
    if (end === 0) return false;
    const start = await db.read(() => batchBefore.get(end) ?? 0);
    const steps =
      start === 0
        ? []
        : ([
            [SQL.listByTime, [start, end]],
            [SQL.listByStatus, [start, end]],
            [SQL.listUnhandled, [start, end]],
          ] as const);
    await log.commit({ guarded: false, steps: [...steps, [SQL.noteListed, [start]]] });
    return true;
  }

  async function run(): Promise<void> {
    for (let isMore = true; isMore && !stopped.signal.aborted; ) {
      try {
        isMore = await step();
        await pause(PAUSE_MS);
      } catch (error) {
        if (stopped.signal.aborted) return;
        logger.warn('Deliveries of an earlier version could not be added to the lists; retrying', { error });
        await pause(RETRY_MS);
      }
    }
  }
  const pause = (ms: number): Promise<unknown> =>
    sleep(ms, undefined, { signal: stopped.signal, ref: false }).catch(() => {});

  const running = run();
  return async () => {
    stopped.abort();
    await running;
  };
}
