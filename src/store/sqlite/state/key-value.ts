import type { Clock } from '../../../kit/time/clock.ts';
import { expiryOf, sumOf } from '../../key-value-rules.ts';
import {
  type JsonValue,
  type KeyValueEntry,
  type KeyValueStore,
  requireStorableKey,
} from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { endOfPrefix, firstKey } from '../key-range.ts';
import type { RequireQuota } from './key-value-quota.ts';

interface Row {
  key: string;
  value: string;
  expiresAt: number | null;
}

interface RowWrite extends Row {
  scope: string;
}

export interface KeyValueOptions {
  /** Quota check for each write. If undefined, quotas are not enforced. */
  requireQuota?: RequireQuota;
  /** Callback that is called in the transaction of each change, but not when entries expire. */
  onChange?: (scope: string, key: string) => void;
}

export function sqliteKeyValue(
  db: Database,
  clock: Clock,
  { requireQuota, onChange }: KeyValueOptions = {},
): KeyValueStore {
  const sql = statements(db);

  function rowOf(scope: string, key: string, value: JsonValue, ttlMs?: number): RowWrite {
    requireStorableKey(scope, key);
    return { scope, key, value: JSON.stringify(value), expiresAt: expiryOf(clock, ttlMs) };
  }
  return {
    async get(scope, key) {
      requireStorableKey(scope, key);
      const row = await db.read(() => sql.get.get({ scope, key, now: clock.now() }));
      return row && entryOf(row);
    },
    async set(scope, key, value, ttlMs, quota) {
      const row = rowOf(scope, key, value, ttlMs);
      await db.write(() => {
        if (quota) requireQuota?.(row, quota, clock.now());
        sql.set.run(row);
        onChange?.(scope, key);
      });
    },
    async setIfAbsent(scope, key, value, ttlMs, quota) {
      const row = rowOf(scope, key, value, ttlMs);
      return db.write(() => {
        const now = clock.now();
        if (sql.get.get({ scope, key, now })) return false;
        if (quota) requireQuota?.(row, quota, now);
        const isSet = sql.setIfAbsent.run({ ...row, now }).changes === 1;
        if (isSet) onChange?.(scope, key);
        return isSet;
      });
    },
    async delete(scope, key) {
      requireStorableKey(scope, key);
      return db.write(() => {
        const row = sql.delete.get({ scope, key });
        if (row) onChange?.(scope, key);
        return row !== undefined && (row.expiresAt === null || row.expiresAt > clock.now());
      });
    },
    async increment(scope, key, { by, windowMs, quota }) {
      const first = rowOf(scope, key, 0, windowMs);
      return db.write(() => {
        const found = sql.get.get({ scope, key, now: clock.now() });
        const { value: before, expiresAt } = found ?? first;
        const value = sumOf(key, JSON.parse(before), by);
        const row = { scope, key, value: JSON.stringify(value), expiresAt };
        if (quota) requireQuota?.(row, quota, clock.now());
        sql.set.run(row);
        onChange?.(scope, key);
        return { value, expiresAt };
      });
    },
    async scan(scope, { prefix, after, limit }) {
      requireStorableKey(scope, prefix, after ?? '');
      const range = {
        scope,
        from: firstKey(prefix, after),
        to: endOfPrefix(prefix),
        now: clock.now(),
        limit,
      };
      const rows = await db.read(() => sql.scan.all(range));
      return rows.map(entryOf);
    },
    sweep: (limit) => db.write(() => sql.sweep.run({ now: clock.now(), limit }).changes),
  };
}

function statements(db: Database) {
  const columns = 'key, value, expires_at as expiresAt';
  const live = '(expires_at is null or expires_at > :now)';
  const insert =
    'insert into key_value (scope, key, value, expires_at) values (:scope, :key, :value, :expiresAt)';
  const replace =
    'on conflict (scope, key) do update set value = excluded.value, expires_at = excluded.expires_at';
  return {
    get: db.prepare<[{ scope: string; key: string; now: number }], Row>(`
      select ${columns} from key_value where scope = :scope and key = :key and ${live}`),
    set: db.prepare<[RowWrite]>(`${insert} ${replace}`),
    setIfAbsent: db.prepare<[RowWrite & { now: number }]>(
      `${insert} ${replace} where key_value.expires_at <= :now`,
    ),
    delete: db.prepare<[{ scope: string; key: string }], { expiresAt: number | null }>(`
      delete from key_value where scope = :scope and key = :key returning expires_at as expiresAt`),
    scan: db.prepare<
      [{ scope: string; from: string; to: string | Buffer; now: number; limit: number }],
      Row
    >(`
      select ${columns} from key_value
      where scope = :scope and key >= :from and key < :to and ${live}
      order by key limit :limit`),
    sweep: db.prepare<[{ now: number; limit: number }]>(`
      delete from key_value where (scope, key) in (
        select scope, key from key_value where expires_at <= :now order by expires_at limit :limit)`),
  };
}

function entryOf({ key, value, expiresAt }: Row): KeyValueEntry {
  return { key, value: JSON.parse(value), expiresAt };
}
