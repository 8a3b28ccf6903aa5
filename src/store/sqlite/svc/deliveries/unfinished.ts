import { setImmediate as turn } from 'node:timers/promises';
import type { DeliveryEnd, DeliveryRecord } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { InboxLog } from '../inbox-log.ts';
import type { DeliveryRows } from './rows.ts';
import { createUnappliedEnds, type UnappliedEnds } from './unapplied-ends.ts';

/**
 * Limits per event-loop turn for reading unfinished deliveries. Usually the time limit applies, because rows on
 * separate pages are slow to read.
 */
const TURN = { ms: 5, bytes: 1024 * 1024 };

/**
 * Reads deliveries that wait for their handler. Skips deliveries that have ended, but whose end is not in the database
 * yet.
 */
export class UnfinishedDeliveries {
  readonly #db: Database;
  readonly #log: InboxLog;
  readonly #rows: DeliveryRows;
  readonly #unappliedEnds: UnappliedEnds;
  /**
   * Journal sequence number of the latest delivery end with the status `retrying`. Until this frame is applied, the
   * delivery row is outdated.
   */
  #retriedAt = 0;

  constructor(db: Database, log: InboxLog, rows: DeliveryRows) {
    this.#db = db;
    this.#log = log;
    this.#rows = rows;
    this.#unappliedEnds = createUnappliedEnds(log);
  }

  /** Records the end of a delivery. `sequence` is the sequence number of the journal frame that contains the end. */
  ended(webhookId: string, { status }: DeliveryEnd, sequence: number): void {
    this.#unappliedEnds.add(webhookId, sequence);
    if (status === 'retrying') this.#retriedAt = sequence;
  }

  async list(limit: number, after: number): Promise<DeliveryRecord[]> {
    const found: DeliveryRecord[] = [];
    for (let from = after; found.length < limit; ) {
      const { records, isAll } = await this.#page(limit - found.length, from);
      found.push(...records.filter(({ webhookId }) => !this.#unappliedEnds.has(webhookId)));
      await turn();
      if (isAll) break;
      from = records.at(-1)!.position;
    }
    return found;
  }

  /**
   * Reads one page. Waits only for the journal frames that the page needs, because the whole journal is long in a
   * burst.
   */
  async #page(limit: number, after: number): Promise<{ records: DeliveryRecord[]; isAll: boolean }> {
    const last = this.#log.added;
    for (;;) {
      const { applied } = this.#log;
      if (this.#retriedAt <= applied) {
        const page = await this.#db.read(() => this.#rows.unfinished(limit, after, TURN));
        if (!page.isAll || applied >= last) return page;
      }
      await this.#log.progress(applied);
    }
  }
}
