import { HOUR_COUNTS_MS } from '../../../hour-of.ts';
import type { DeliveryHourCounts, HourRange } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { InboxLog } from '../inbox-log.ts';
import { SQL } from './statements.ts';

/** Counts of deliveries per hour. */
export class DeliveryHours {
  readonly #db: Database;
  readonly #log: InboxLog;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Database, log: InboxLog) {
    this.#db = db;
    this.#log = log;
    this.#sql = statements(db);
  }

  list(namespaceId: string, range: HourRange): Promise<DeliveryHourCounts[]> {
    return this.#db.read(() => this.#sql.counts.all({ namespaceId, ...range }));
  }

  /** Deletes counts that exceed their retention. */
  async prune(now: number): Promise<void> {
    const before = now - HOUR_COUNTS_MS;
    const oldest = await this.#db.read(() => this.#sql.oldest.get());
    if (oldest == null || oldest >= before) return;
    await this.#log.commit({ guarded: false, steps: [[SQL.pruneHours, [before]]] });
  }
}

function statements(db: Database) {
  return {
    counts: db.prepare<[{ namespaceId: string } & HourRange], DeliveryHourCounts>(`
      select hour, received, succeeded, failed, unhandled from delivery_hour
      where namespace_id = :namespaceId and hour >= :from and hour < :to order by hour`),
    oldest: db.prepare<[], number | null>('select hour from delivery_hour order by hour limit 1').pluck(),
  };
}
