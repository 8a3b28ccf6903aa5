import { type EntryUsage, exceedsQuota, quotaExceeded } from '../../key-value-rules.ts';
import type { EntryQuota } from '../../ports/index.ts';
import type { Database } from '../database.ts';

/** Number of keys and bytes per scope. Triggers maintain these numbers, so that no write can bypass the count. */
export const KEY_VALUE_USAGE = `
  create table key_value_usage (
    scope text primary key not null,
    keys integer not null,
    bytes integer not null
  ) strict, without rowid;
  insert into key_value_usage (scope, keys, bytes)
    select scope, count(*), sum(length(cast(key as blob)) + length(cast(value as blob))) from key_value group by scope;
  create trigger key_value_inserted after insert on key_value begin
    insert into key_value_usage (scope, keys, bytes)
    values (new.scope, 1, length(cast(new.key as blob)) + length(cast(new.value as blob)))
    on conflict (scope) do update set keys = keys + 1, bytes = bytes + excluded.bytes;
  end;
  create trigger key_value_updated after update of value on key_value begin
    update key_value_usage
    set bytes = bytes + length(cast(new.value as blob)) - length(cast(old.value as blob))
    where scope = new.scope;
  end;
  create trigger key_value_deleted after delete on key_value begin
    update key_value_usage
    set keys = keys - 1, bytes = bytes - length(cast(old.key as blob)) - length(cast(old.value as blob))
    where scope = old.scope;
    delete from key_value_usage where scope = old.scope and keys = 0;
  end;`;

export interface QuotaRow {
  scope: string;
  key: string;
  value: string;
}

export type RequireQuota = (row: QuotaRow, quota: EntryQuota, now: number) => void;

/** Maximum number of expired rows that one write deletes to get below the quota. */
const MAX_EXPIRED_ROWS = 1000;

/**
 * Returns the quota check, which must run in the transaction of the write. Writes that do not enlarge the scope are
 * always accepted.
 */
export function entryQuotas(db: Database): RequireQuota {
  const sql = {
    usage: db.prepare<[{ scope: string }], EntryUsage>(
      'select keys, bytes from key_value_usage where scope = :scope',
    ),
    bytesOf: db.prepare<[{ scope: string; key: string }], { bytes: number }>(`
      select length(cast(key as blob)) + length(cast(value as blob)) as bytes
      from key_value where scope = :scope and key = :key`),
    deleteExpired: db.prepare<[{ scope: string; now: number; limit: number }]>(`
      delete from key_value where (scope, key) in (
        select scope, key from key_value where scope = :scope and expires_at <= :now limit :limit)`),
  };

  function excess({ scope, key, value }: QuotaRow, quota: EntryQuota): EntryUsage | null {
    const used = sql.usage.get({ scope }) ?? { keys: 0, bytes: 0 };
    const before = sql.bytesOf.get({ scope, key })?.bytes;
    return exceedsQuota({ key, value }, used, before, quota) ? used : null;
  }

  return (row, quota, now) => {
    if (!excess(row, quota)) return;
    sql.deleteExpired.run({ scope: row.scope, now, limit: MAX_EXPIRED_ROWS });
    const used = excess(row, quota);
    if (used) throw quotaExceeded(row.key, used, quota);
  };
}
