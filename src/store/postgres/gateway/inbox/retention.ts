import type { PostgresDatabase } from '../../database.ts';
import { IS_OPEN, IS_UNHANDLED } from './schema.ts';

/** Maximum body bytes that one call deletes, to keep the transaction short. */
const MAX_DROPPED_BYTES = 16 * 1024 * 1024;
/**
 * Share of the store for records that no handler processed. In a full store, the share is only a quarter of this value.
 */
const UNHANDLED_SHARE = 0.1;
/** Maximum size of a record that no handler processed. Such a record has no body, and its headers are truncated. */
const MAX_UNHANDLED_BYTES = 4096;

const WAITS = `status in ('accepted', 'retrying')`;

interface Usage {
  unhandled: number;
  bytes: number;
}

/**
 * Deletes deliveries past their retention time, and the oldest bodies and deliveries of a store that is too large.
 * Several gateways can delete at the same time.
 */
export class PostgresDeliveryRetention {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  /**
   * Deletes records received before `receivedBefore`, unless they wait for their handler. Returns the number of deleted
   * records.
   */
  prune(receivedBefore: number, limit: number): Promise<number> {
    return this.#delete(`received_at < ${Math.floor(receivedBefore)} and not (${WAITS})`, limit);
  }

  /**
   * Deletes at most `limit` records or bodies if the store exceeds `maxBytes`, or if unhandled records exceed their
   * share. Returns the number of deleted records and bodies.
   */
  async shrink({ maxBytes, limit }: { maxBytes: number; limit: number }): Promise<number> {
    const { unhandled, bytes } = await this.#usage();
    const excess = bytes - maxBytes;
    const share = Math.floor((maxBytes * UNHANDLED_SHARE) / MAX_UNHANDLED_BYTES);
    const surplus = unhandled - (excess > 0 ? Math.floor(share / 4) : share);
    if (surplus > 0) return this.#delete(IS_UNHANDLED, Math.min(limit, surplus));
    if (excess <= 0) return 0;
    const dropped = await this.#dropBodies(Math.min(excess, MAX_DROPPED_BYTES), limit);
    return dropped || this.#delete(`not (${IS_OPEN})`, limit);
  }

  /**
   * Returns the total usage and merges the usage rows into one row. Rows that another sweep has locked are counted but
   * not merged.
   */
  async #usage(): Promise<Usage> {
    await this.#database.sql(`
      with old as (
        delete from svc.delivery_usage where ctid in (
          select ctid from svc.delivery_usage for update skip locked)
        returning records, unhandled, bytes
      )
      insert into svc.delivery_usage (records, unhandled, bytes)
      select sum(records), sum(unhandled), sum(bytes) from old having count(*) > 0`);
    const { rows } = await this.#database.sql<Usage>(
      'select coalesce(sum(unhandled), 0) as unhandled, coalesce(sum(bytes), 0) as bytes from svc.delivery_usage',
    );
    return rows[0]!;
  }

  /**
   * Deletes at most `limit` of the oldest bodies of ended deliveries, until `bytes` are freed. Returns the number of
   * deleted bodies.
   */
  async #dropBodies(bytes: number, limit: number): Promise<number> {
    const { rows } = await this.#database.sql<{ count: number }>(
      `with oldest as (
         select b.position, d.body_bytes from svc.delivery_body b join svc.delivery d using (position)
         where not (${IS_OPEN}) order by b.position limit $2
       ), summed as (
         select position, sum(body_bytes) over (order by position) - body_bytes as before from oldest
       ), dropped as (
         delete from svc.delivery_body where position in (select position from summed where before < $1)
         returning octet_length(body) as bytes
       ), counted as (
         insert into svc.delivery_usage (records, unhandled, bytes)
         select 0, 0, -sum(bytes) from dropped having count(*) > 0
       )
       select count(*) as count from dropped`,
      [bytes, limit],
    );
    return rows[0]!.count;
  }

  /**
   * Deletes at most `limit` of the oldest records that match `condition`, together with their bodies. Returns the
   * number of deleted records.
   */
  async #delete(condition: string, limit: number): Promise<number> {
    const { rows } = await this.#database.sql<{ count: number }>(
      `with removed as (
         delete from svc.delivery where position in (
           select position from svc.delivery where ${condition} order by position limit $1 for update skip locked)
         returning position, status, svc.record_bytes(headers, steps, outcome) as bytes
       ), bodies as (
         delete from svc.delivery_body where position in (select position from removed)
         returning octet_length(body) as bytes
       ), counted as (
         insert into svc.delivery_usage (records, unhandled, bytes)
         select -count(*), -count(*) filter (where ${IS_UNHANDLED}),
           -sum(bytes) - (select coalesce(sum(bytes), 0) from bodies)
         from removed having count(*) > 0
       )
       select count(*) as count from removed`,
      [limit],
    );
    return rows[0]!.count;
  }
}
