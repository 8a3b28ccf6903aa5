import { sql, type Transaction } from 'kysely';
import type { Clock } from '../../../kit/time/clock.ts';
import { type EntryUsage, exceedsQuota, expiryOf, quotaExceeded, sumOf } from '../../key-value-rules.ts';
import {
  type EntryQuota,
  type JsonValue,
  type KeyValueEntry,
  type KeyValueStore,
  requireStorableKey,
} from '../../ports/index.ts';
import { prefixEnd } from '../../prefix-end.ts';
import type { PostgresDatabase, Query } from '../database.ts';
import type { Tables } from '../tables.ts';

interface Row {
  scope: string;
  key: string;
  value: string;
  expiresAt: number | null;
}

/** Adds a change of an entry to the feed, in the transaction that changes the entry. */
export type AnnounceChange = (query: Transaction<Tables>, key: string) => Promise<void>;

type EntryTable = 'cacheEntry' | 'stateEntry';

/** Maximum number of expired rows that a write above the quota deletes. */
const MAX_EXPIRED_ROWS = 1000;
/** Distinguishes the lock of a scope from other advisory locks. */
const LOCK_SEED = 0x6b7673;

export class PostgresKeyValue implements KeyValueStore {
  readonly #database: PostgresDatabase;
  readonly #table: EntryTable;
  readonly #clock: Clock;
  readonly #announcer: (scope: string) => AnnounceChange | undefined;

  /**
   * `announcer` returns the function that announces changes of a scope, or undefined if the scope is not announced.
   * Expiry is never announced.
   */
  constructor(
    database: PostgresDatabase,
    table: EntryTable,
    clock: Clock,
    announcer: (scope: string) => AnnounceChange | undefined = () => undefined,
  ) {
    this.#database = database;
    this.#table = table;
    this.#clock = clock;
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
            .where(`${this.#table}.expiresAt`, '<=', this.#clock.now()),
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
        .returning('expiresAt')
        .executeTakeFirst();
      const isDeleted = row !== undefined && (row.expiresAt === null || row.expiresAt > this.#clock.now());
      return { result: isDeleted, isChanged: row !== undefined };
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

  async sweep(limit: number): Promise<number> {
    const { numDeletedRows } = await this.#database.run((query) =>
      this.#deleteExpired(query, limit).executeTakeFirst(),
    );
    return Number(numDeletedRows);
  }

  #rowOf(scope: string, key: string, value: JsonValue, ttlMs: number | undefined): Row {
    requireStorableKey(scope, key);
    return { scope, key, value: JSON.stringify(value), expiresAt: expiryOf(this.#clock, ttlMs) };
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
      .where((where) =>
        where.or([where('expiresAt', 'is', null), where('expiresAt', '>', this.#clock.now())]),
      );
  }

  #find(query: Query, scope: string, key: string): Promise<Row | undefined> {
    return this.#live(query).where('scope', '=', scope).where('key', '=', key).executeTakeFirst();
  }

  async #put(query: Query, row: Row): Promise<void> {
    await query
      .insertInto(this.#table)
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(['scope', 'key']).doUpdateSet({ value: row.value, expiresAt: row.expiresAt }),
      )
      .execute();
  }

  /** Adds `by` to the counter. Returns undefined if the entry is not a number or the sum is too large. */
  #add(query: Query, first: Row, by: number): Promise<Pick<Row, 'value' | 'expiresAt'> | undefined> {
    const stored = (column: string) => sql.ref(`${this.#table}.${column}`);
    const isExpired = sql<boolean>`coalesce(${stored('expiresAt')} <= ${this.#clock.now()}, false)`;
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
            >`case when ${isExpired} then ${first.expiresAt}::bigint else ${stored('expiresAt')} end`,
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
        .where('expiresAt', '<=', this.#clock.now())
        .orderBy('expiresAt')
        .limit(limit)
        // Rows that another process has locked are skipped, because two processes can sweep at the same time.
        .forUpdate()
        .skipLocked();
      if (scope !== undefined) expired = expired.where('scope', '=', scope);
      // For a join of two columns, the planner reads the whole table.
      return sql<boolean>`ctid = any(array(${expired}))`;
    });
  }

  async #requireQuota(query: Query, row: Row, quota: EntryQuota): Promise<void> {
    if (!(await this.#excess(query, row, quota))) return;
    await this.#deleteExpired(query, MAX_EXPIRED_ROWS, row.scope).execute();
    const used = await this.#excess(query, row, quota);
    if (used) throw quotaExceeded(row.key, used, quota);
  }

  async #excess(query: Query, row: Row, quota: EntryQuota): Promise<EntryUsage | null> {
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
