import { setImmediate as turn } from 'node:timers/promises';
import type { DeliveryEnd, DeliveryRecord } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { InboxLog } from '../inbox-log.ts';
import type { DeliveryRows } from './rows.ts';
import { createUnappliedEnds, type UnappliedEnds } from './unapplied-ends.ts';

/**
 * Budget per event-loop turn for reading unfinished deliveries. Time is the real limit: rows on separate
 * pages are slow.
 */
const TURN = { ms: 5, bytes: 1024 * 1024 };

/** Reads deliveries that wait for their handler, and excludes those whose end is not in the database yet. */
export class UnfinishedDeliveries {
  readonly #db: Database;
  readonly #log: InboxLog;
  readonly #rows: DeliveryRows;
  readonly #unappliedEnds: UnappliedEnds;
  /**
   * Log position of the last delivery end with status `retrying`. Until it is applied, rows lack the status and the
   * retry time.
   */
  #retriedAt = 0;

  constructor(db: Database, log: InboxLog, rows: DeliveryRows) {
    this.#db = db;
    this.#log = log;
    this.#rows = rows;
    this.#unappliedEnds = createUnappliedEnds(log);
  }

  /** Notes the end of a delivery at a position of the log. */
  ended(webhookId: string, { status }: DeliveryEnd, place: number): void {
    this.#unappliedEnds.add(webhookId, place);
    if (status === 'retrying') this.#retriedAt = place;
  }

  /** Returns at most `limit` unfinished deliveries after a position, in order. */
  async list(limit: number, after: number): Promise<DeliveryRecord[]> {
    const found: DeliveryRecord[] = [];
    for (let from = after; found.length < limit; ) {
      const { records, isAll } = await this.#page(limit - found.length, from);
      found.push(...records.filter(({ webhookId }) => !this.#unappliedEnds.has(webhookId)));
      // Other work of the event loop may run between two pages.
      await turn();
      if (isAll) break;
      from = records.at(-1)!.position;
    }
    return found;
  }

  /**
   * Reads one page. It applies only as much of the journal as needed: during a burst each read would otherwise apply
   * all of it.
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
