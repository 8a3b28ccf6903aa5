import type { Statement } from 'better-sqlite3';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { Database } from '../../database.ts';
import { usedBytes } from '../../used-bytes.ts';
import type { InboxLog } from '../inbox-log.ts';
import type { TextIndex } from '../text-index/text-index.ts';
import { type BodyRetention, bodyRetention } from './body-retention.ts';
import { type DeliveryPruning, deliveryPruning } from './pruning.ts';
import type { DeliveryRows } from './rows.ts';
import { SQL } from './statements.ts';

/**
 * Maximum total size of the bodies that one transaction deletes. Deleting a body is slow, because all of its pages are
 * read.
 */
const MAX_DROPPED_BYTES = 16 * 1024 * 1024;
/**
 * Maximum share of the store for deliveries that no handler processed. In a full store, the maximum is a quarter of
 * this share.
 */
const UNHANDLED_SHARE = 0.1;
/**
 * Maximum size of a delivery that no handler processed. Such a delivery is stored without its body and with truncated
 * headers.
 */
const MAX_UNHANDLED_BYTES = 4096;

export interface DeliveryRetentionDeps {
  db: Database;
  log: InboxLog;
  rows: DeliveryRows;
  texts: TextIndex;
  clock: Clock;
}

export class DeliveryRetention {
  readonly #deps: DeliveryRetentionDeps;
  readonly #bodies: BodyRetention;
  readonly #pruning: DeliveryPruning;

  /** Items of queues are not deliveries, so a full queue must not make deliveries be deleted. */
  readonly #queueBytes: Statement<[], number>;

  constructor(deps: DeliveryRetentionDeps) {
    const { db, log, rows, clock } = deps;
    this.#deps = deps;
    this.#queueBytes = db.prepare<[], number>('select coalesce(sum(bytes), 0) from queue').pluck();
    this.#bodies = bodyRetention(db, log, rows);
    this.#pruning = deliveryPruning(db, log, rows, clock);
  }

  /** Deletes deliveries that were received before a given time. Returns the number of deleted deliveries. */
  prune(receivedBefore: number, limit: number): Promise<number> {
    return this.#pruning.old(receivedBefore, limit);
  }

  /**
   * Deletes at most `limit` deliveries or bodies if the store exceeds `maxBytes`, or if unhandled deliveries exceed
   * their share. Returns the number of deleted deliveries or bodies.
   */
  async shrink({ maxBytes, limit }: { maxBytes: number; limit: number }): Promise<number> {
    const { db, log, texts } = this.#deps;
    const stored = usedBytes(db) - (await db.read(() => this.#queueBytes.get()!));
    const excess = stored + (await texts.bytes(this.#bodies.bodilessUntil)) - maxBytes;
    const surplus = await this.#unhandledSurplus(maxBytes, excess > 0);
    if (surplus > 0) return this.#pruneUnhandled(Math.min(limit, surplus));
    if (excess <= 0) return 0;
    // Bodies that are only in the journal cannot be deleted. Without this wait, whole deliveries might be deleted
    // instead of bodies.
    await log.settled();
    const bytes = Math.min(excess, MAX_DROPPED_BYTES);
    return (await this.#bodies.drop(bytes, limit)) || (await this.#pruning.ended(limit));
  }

  /**
   * Returns the number of deliveries that no handler processed and that exceed their share of the store. Retention
   * deletes these deliveries first.
   */
  async #unhandledSurplus(maxBytes: number, isFull: boolean): Promise<number> {
    const share = Math.floor((maxBytes * UNHANDLED_SHARE) / MAX_UNHANDLED_BYTES);
    const kept = isFull ? Math.floor(share / 4) : share;
    return Math.max(0, (await this.#deps.db.read(() => this.#deps.rows.unhandled())) - kept);
  }

  async #pruneUnhandled(limit: number): Promise<number> {
    const { changes } = await this.#deps.log.commit({
      guarded: false,
      steps: [[SQL.pruneUnhandled, [limit]]],
    });
    return changes;
  }
}
