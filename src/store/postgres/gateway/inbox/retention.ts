import type { PostgresDatabase } from '../../database.ts';
import { tryLockName } from '../../named-lock.ts';
import type { Sql } from '../../named-sql.ts';
import { settleDeliveryHours } from './hour-counts.ts';
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

/** Name of the lock with which one gateway at a time deletes. */
const LOCK = 'delivery retention';

/**
 * Selects the oldest expired deliveries of each namespace, which is the first column of the index. Times are not in the
 * order of positions, because clocks of nodes differ and spilled deliveries are stored late.
 */
const EXPIRED = `
  with recursive namespace (id) as (
    (select namespace_id from svc.delivery order by namespace_id limit 1)
    union all
    select (select d.namespace_id from svc.delivery d where d.namespace_id > n.id order by d.namespace_id limit 1)
    from namespace n where n.id is not null
  )
  select expired.position from namespace cross join lateral (
    select d.position from svc.delivery d
    where d.namespace_id = namespace.id and d.received_at < :before and not (${WAITS})
    order by d.received_at, d.position limit :limit for update skip locked
  ) as expired where namespace.id is not null limit :limit`;

/** Selects the oldest deliveries that no handler processed. */
const UNHANDLED = `
  select position from svc.delivery where ${IS_UNHANDLED} order by position limit :limit for update skip locked`;

/** Selects the oldest ended deliveries. */
const ENDED = `
  select position from svc.delivery where not (${IS_OPEN}) order by position limit :limit for update skip locked`;

/**
 * Deletes deliveries past their retention time, and the oldest bodies and deliveries of a store that is too large. One
 * gateway deletes at a time. A statement locks only the rows that it deletes, and no row that waits for its handler.
 */
export class PostgresDeliveryRetention {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  /**
   * Settles the counts per hour. Deletes records received before `receivedBefore`, unless they wait for their handler. Returns the number of deleted
   * records.
   */
  prune(receivedBefore: number, limit: number, now: number): Promise<number> {
    return this.#alone(async (sql) => {
      await settleDeliveryHours(sql, now);
      return deleteRecords(sql, EXPIRED, { before: Math.floor(receivedBefore), limit });
    });
  }

  /**
   * Deletes at most `limit` records or bodies if the store exceeds `maxBytes`, or if unhandled records exceed their
   * share. Returns the number of deleted records and bodies.
   */
  shrink({ maxBytes, limit }: { maxBytes: number; limit: number }): Promise<number> {
    return this.#alone(async (sql) => {
      const { unhandled, bytes } = await readUsage(sql);
      const excess = bytes - maxBytes;
      const share = Math.floor((maxBytes * UNHANDLED_SHARE) / MAX_UNHANDLED_BYTES);
      const surplus = unhandled - (excess > 0 ? Math.floor(share / 4) : share);
      if (surplus > 0) return deleteRecords(sql, UNHANDLED, { limit: Math.min(limit, surplus) });
      if (excess <= 0) return 0;
      const dropped = await dropBodies(sql, { bytes: Math.min(excess, MAX_DROPPED_BYTES), limit });
      return dropped || deleteRecords(sql, ENDED, { limit });
    });
  }

  /** Runs a short transaction, or returns 0 if another gateway is deleting. */
  #alone(work: (sql: Sql) => Promise<number>): Promise<number> {
    return this.#database.transact(async (sql) => ((await tryLockName(sql, LOCK)) ? work(sql) : 0));
  }
}

/** Returns the total usage and merges the usage rows into one row. */
async function readUsage(sql: Sql): Promise<Usage> {
  await sql(`
    with old as (
      delete from svc.delivery_usage where ctid in (
        select ctid from svc.delivery_usage for update skip locked)
      returning records, unhandled, bytes
    )
    insert into svc.delivery_usage (records, unhandled, bytes)
    select sum(records), sum(unhandled), sum(bytes) from old having count(*) > 0`);
  const [usage] = await sql<Usage>(
    'select coalesce(sum(unhandled), 0) as unhandled, coalesce(sum(bytes), 0) as bytes from svc.delivery_usage',
  );
  return usage!;
}

/**
 * Deletes at most `limit` of the oldest bodies of ended deliveries, until `bytes` are freed. Returns the number of
 * deleted bodies.
 */
async function dropBodies(sql: Sql, values: { bytes: number; limit: number }): Promise<number> {
  // `offset 0` keeps the planner from a join that reads all deliveries without a body first.
  const [row] = await sql<{ count: number }>(
    `with oldest as (
       select b.position, d.body_bytes from svc.delivery_body b cross join lateral (
         select body_bytes from svc.delivery where position = b.position and not (${IS_OPEN}) offset 0) as d
       order by b.position limit :limit
     ), summed as (
       select position, sum(body_bytes) over (order by position) - body_bytes as before from oldest
     ), dropped as (
       delete from svc.delivery_body where position = any(array(select position from summed where before < :bytes))
       returning octet_length(body) as bytes
     ), counted as (
       insert into svc.delivery_usage (records, unhandled, bytes)
       select 0, 0, -sum(bytes) from dropped having count(*) > 0
     )
     select count(*) as count from dropped`,
    values,
  );
  return row!.count;
}

/** Deletes the records that `selection` returns, together with their bodies. Returns the number of deleted records. */
async function deleteRecords(sql: Sql, selection: string, values: object): Promise<number> {
  // Arrays of positions are looked up in the index. For a join, the planner may read the whole table.
  const [row] = await sql<{ count: number }>(
    `with removed as (
       delete from svc.delivery where position = any(array(${selection}))
       returning position, status, svc.record_bytes(headers, steps, outcome) as bytes
     ), bodies as (
       delete from svc.delivery_body where position = any(array(select position from removed))
       returning octet_length(body) as bytes
     ), counted as (
       insert into svc.delivery_usage (records, unhandled, bytes)
       select -count(*), -count(*) filter (where ${IS_UNHANDLED}),
         -sum(bytes) - (select coalesce(sum(bytes), 0) from bodies)
       from removed having count(*) > 0
     )
     select count(*) as count from removed`,
    values,
  );
  return row!.count;
}
