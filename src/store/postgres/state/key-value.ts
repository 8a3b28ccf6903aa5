import { type RawBuilder, sql, type Transaction } from 'kysely';
import type { Clock } from '../../../kit/time/clock.ts';
import { type EntryUsage, exceedsQuota, quotaExceeded, sumOf } from '../../key-value-rules.ts';
import {
  type EntryQuota,
  type JsonValue,
  type KeyValueEntry,
  type KeyValueStore,
  requireStorableKey,
} from '../../ports/index.ts';
import { prefixEnd } from '../../prefix-end.ts';
import type { PostgresDatabase, Query } from '../database.ts';
import { STATEMENT_TIME } from '../database-clock.ts';
import type { Tables } from '../tables.ts';

interface Row {
  scope: string;
  key: string;
  value: string;
  expiresAt: number | null;
}

/** A row to be written. The database computes the expiry. */
type NewRow = Omit<Row, 'expiresAt'> & { expiresAt: RawBuilder<number | null> };

/** Options of a key-value table. */
export interface PostgresKeyValueOptions {
  /** Replaces the clock of the database in tests. */
  leaseClock?: Clock | undefined;
  /**
   * Returns the function that announces changes of a scope, or undefined if the scope is not announced. Expiry is never
   * announced.
   */
  announcer?: ((scope: string) => AnnounceChange | undefined) | undefined;
}

/** Adds a change of an entry to the feed, in the transaction that changes the entry. */
export type AnnounceChange = (query: Transaction<Tables>, key: string) => Promise<void>;

type EntryTable = 'cacheEntry' | 'stateEntry';

/** Maximum number of expired rows that a write above the quota deletes. */
const MAX_EXPIRED_ROWS = 1000;
/** Distinguishes the lock of a scope from other advisory locks. */
const LOCK_SEED = 0x6b7673;
const SWEEP_LOCK_SEED = 0x6b7677;

/** Key-value store in PostgreSQL. Entries expire by the clock of the database, so that all nodes agree. */
export class PostgresKeyValue implements KeyValueStore {
  readonly #database: PostgresDatabase;
  readonly #table: EntryTable;
  readonly #leaseClock: Clock | undefined;
  readonly #announcer: (scope: string) => AnnounceChange | undefined;

  constructor(
    database: PostgresDatabase,
    table: EntryTable,
    { leaseClock, announcer = () => undefined }: PostgresKeyValueOptions = {},
  ) {
    this.#database = database;
    this.#table = table;
    this.#leaseClock = leaseClock;
    this.#announcer = announcer;
  }

  async get(scope: string, key: string): Promise<KeyValueEntry | undefined> {
    requireStorableKey(scope, key);
    const row = await this.#database.run((query) => this.#find(query, scope, key));
    return row && entryOf(row);
  }

  async set(scope: string, key: string, value: JsonValue, ttlMs?: number, quota?: EntryQuota): Promise<void> {
    const row = this.#rowOf(scope, key, value, ttlMs);
    await this.#write(row, quota, async (query) => {
      if (quota) await this.#requireQuota(query, row, quota);
      await this.#put(query, row);
      return { result: undefined, isChanged: true };
    });
  }

  async setIfAbsent(
    scope: string,
    key: string,
    value: JsonValue,
    ttlMs?: number,
    quota?: EntryQuota,
  ): Promise<boolean> {
    const row = this.#rowOf(scope, key, value, ttlMs);
    return this.#write(row, quota, async (query) => {
      if (await this.#find(query, scope, key)) return { result: false, isChanged: false };
      if (quota) await this.#requireQuota(query, row, quota);
      const { numInsertedOrUpdatedRows } = await query
        .insertInto(this.#table)
        .values(row)
        .onConflict((conflict) =>
          conflict
            .columns(['scope', 'key'])
            .doUpdateSet({ value: row.value, expiresAt: row.expiresAt })
            .where(`${this.#table}.expiresAt`, '<=', this.#now),
        )
        .executeTakeFirst();
      const isSet = numInsertedOrUpdatedRows === 1n;
      return { result: isSet, isChanged: isSet };
    });
  }

  async delete(scope: string, key: string): Promise<boolean> {
    requireStorableKey(scope, key);
    return this.#write({ scope, key }, undefined, async (query) => {
      const row = await query
        .deleteFrom(this.#table)
        .where('scope', '=', scope)
        .where('key', '=', key)
        .returning(sql<boolean>`coalesce(expires_at > ${this.#now}, true)`.as('isLive'))
        .executeTakeFirst();
      return { result: row?.isLive === true, isChanged: row !== undefined };
    });
  }

  async increment(
    scope: string,
    key: string,
    { by, windowMs, quota }: { by: number; windowMs?: number; quota?: EntryQuota },
  ): Promise<{ value: number; expiresAt: number | null }> {
    const first = this.#rowOf(scope, key, by, windowMs);
    return this.#write(first, quota, async (query) => {
      if (quota) await this.#requireQuota(query, first, quota);
      for (;;) {
        const sum = await this.#add(query, first, by);
        if (sum) return { result: { value: Number(sum.value), expiresAt: sum.expiresAt }, isChanged: true };
        // `sumOf` throws if the entry is not a number or the sum is too large. Without an error, another call has
        // changed the entry, so the loop tries again.
        const found = await this.#find(query, scope, key);
        if (found) sumOf(key, JSON.parse(found.value), by);
      }
    });
  }

  async scan(
    scope: string,
    { prefix, after, limit }: { prefix: string; after?: string; limit: number },
  ): Promise<KeyValueEntry[]> {
    requireStorableKey(scope, prefix, after ?? '');
    const rows = await this.#database.run((query) => {
      let page = this.#live(query).where('scope', '=', scope).where('key', '>=', prefix);
      const end = prefixEnd(prefix);
      if (end !== undefined) page = page.where('key', '<', end);
      if (after !== undefined) page = page.where('key', '>', after);
      return page.orderBy('key').limit(limit).execute();
    });
    return rows.map(entryOf);
  }

  /** Returns 0 while another process sweeps. Two sweeps of many scopes could otherwise wait for each other. */
  sweep(limit: number): Promise<number> {
    return this.#database.transaction(async (query) => {
      const name = sql`hashtextextended(${this.#table}, ${sql.lit(SWEEP_LOCK_SEED)})`;
      const { rows } = await sql<{
        isOurs: boolean;
      }>`select pg_try_advisory_xact_lock(${name}) as is_ours`.execute(query);
      if (!rows[0]!.isOurs) return 0;
      const { numDeletedRows } = await this.#deleteExpired(query, limit).executeTakeFirstOrThrow();
      return Number(numDeletedRows);
    });
  }

  /** SQL for the current time, in epoch ms. */
  get #now(): RawBuilder<number> {
    return this.#leaseClock ? sql`${this.#leaseClock.now()}::bigint` : sql.raw(STATEMENT_TIME);
  }

  #rowOf(scope: string, key: string, value: JsonValue, ttlMs: number | undefined): NewRow {
    requireStorableKey(scope, key);
    const expiresAt =
      ttlMs === undefined
        ? sql<null>`null::bigint`
        : sql<number>`least(${this.#now} + ${ttlMs}::bigint, ${sql.lit(Number.MAX_SAFE_INTEGER)})`;
    return { scope, key, value: JSON.stringify(value), expiresAt };
  }

  /**
   * Runs a write, and announces the change if the scope is announced. Writes with a quota run one at a time per scope,
   * so that concurrent writes cannot exceed the quota.
   */
  async #write<Result>(
    { scope, key }: Pick<Row, 'scope' | 'key'>,
    quota: EntryQuota | undefined,
    work: (query: Query) => Promise<{ result: Result; isChanged: boolean }>,
  ): Promise<Result> {
    const announce = this.#announcer(scope);
    if (!quota && !announce) return (await this.#database.run(work)).result;
    return this.#database.transaction(async (query) => {
      if (quota) {
        const name = sql`hashtextextended(${scope}, ${sql.lit(LOCK_SEED)})`;
        await sql`select pg_advisory_xact_lock(${name})`.execute(query);
      }
      const { result, isChanged } = await work(query);
      if (isChanged) await announce?.(query, key);
      return result;
    });
  }

  #live(query: Query) {
    return query
      .selectFrom(this.#table)
      .select(['scope', 'key', 'value', 'expiresAt'])
      .where((where) => where.or([where('expiresAt', 'is', null), where('expiresAt', '>', this.#now)]));
  }

  #find(query: Query, scope: string, key: string): Promise<Row | undefined> {
    return this.#live(query).where('scope', '=', scope).where('key', '=', key).executeTakeFirst();
  }

  async #put(query: Query, row: NewRow): Promise<void> {
    await query
      .insertInto(this.#table)
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(['scope', 'key']).doUpdateSet({ value: row.value, expiresAt: row.expiresAt }),
      )
      .execute();
  }

  /** Adds `by` to the counter. Returns undefined if the entry is not a number or the sum is too large. */
  #add(query: Query, first: NewRow, by: number): Promise<Pick<Row, 'value' | 'expiresAt'> | undefined> {
    const stored = (column: string) => sql.ref(`${this.#table}.${column}`);
    const isExpired = sql<boolean>`coalesce(${stored('expiresAt')} <= ${this.#now}, false)`;
    const isNumber = sql<boolean>`jsonb_typeof(${stored('value')}::jsonb) = 'number'`;
    const sum = sql`${stored('value')}::float8 + ${by}::float8`;
    return query
      .insertInto(this.#table)
      .values(first)
      .onConflict((conflict) =>
        conflict
          .columns(['scope', 'key'])
          .doUpdateSet({
            value: sql<string>`case when ${isExpired} then ${first.value} else (${sum})::text end`,
            expiresAt: sql<
              number | null
            >`case when ${isExpired} then ${first.expiresAt} else ${stored('expiresAt')} end`,
          })
          .where(
            sql<boolean>`${isExpired} or case when ${isNumber} then abs(${sum}) <= ${sql.lit(Number.MAX_SAFE_INTEGER)} else false end`,
          ),
      )
      .returning(['value', 'expiresAt'])
      .executeTakeFirst();
  }

  #deleteExpired(query: Query, limit: number, scope?: string) {
    return query.deleteFrom(this.#table).where(({ selectFrom }) => {
      let expired = selectFrom(this.#table)
        .select(sql`ctid`.as('id'))
        .where('expiresAt', '<=', this.#now)
        .orderBy('expiresAt')
        .limit(limit)
        // Rows that a writer has locked are skipped, because the writer replaces or deletes them.
        .forUpdate()
        .skipLocked();
      if (scope !== undefined) expired = expired.where('scope', '=', scope);
      // For a join of two columns, the planner reads the whole table.
      return sql<boolean>`ctid = any(array(${expired}))`;
    });
  }

  async #requireQuota(query: Query, row: NewRow, quota: EntryQuota): Promise<void> {
    if (!(await this.#excess(query, row, quota))) return;
    await this.#deleteExpired(query, MAX_EXPIRED_ROWS, row.scope).execute();
    const used = await this.#excess(query, row, quota);
    if (used) throw quotaExceeded(row.key, used, quota);
  }

  async #excess(query: Query, row: NewRow, quota: EntryQuota): Promise<EntryUsage | null> {
    const used = (await query
      .selectFrom('stateEntryUsage')
      .select(['keys', 'bytes'])
      .where('scope', '=', row.scope)
      .executeTakeFirst()) ?? { keys: 0, bytes: 0 };
    const replaced = await query
      .selectFrom(this.#table)
      .select(sql<number>`octet_length(key) + octet_length(value)`.as('bytes'))
      .where('scope', '=', row.scope)
      .where('key', '=', row.key)
      .executeTakeFirst();
    return exceedsQuota(row, used, replaced?.bytes, quota) ? used : null;
  }
}

function entryOf({ key, value, expiresAt }: Row): KeyValueEntry {
  return { key, value: JSON.parse(value), expiresAt };
}
