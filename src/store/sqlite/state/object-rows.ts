import type { StoredObject } from '../../../contracts/index.ts';
import type { Database } from '../database.ts';
import { endOfPrefix, firstKey } from '../key-range.ts';

interface Row {
  scope: string;
  key: string;
  file: string;
  bytes: number;
  modifiedAt: number;
}

export interface ObjectRows {
  find(scope: string, key: string): Row | undefined;
  /** Returns the total bytes of all objects of the scope. */
  usage(scope: string): number;
  hasFile(file: string): boolean;
  scan(scope: string, prefix: string, after: string | undefined, limit: number): StoredObject[];
  /** Inserts or replaces a row and returns the name of the object's previous file. Must run inside `db.write`. */
  put(row: Row): string | undefined;
  /** Deletes a row and returns the name of its file. Must run inside `db.write`. */
  remove(scope: string, key: string): string | undefined;
}

export function objectRows(db: Database): ObjectRows {
  const find = db.prepare<[string, string], Row>(
    'select scope, key, file, bytes, modified_at as modifiedAt from object where scope = ? and key = ?',
  );
  const usage = db.prepare<[string], number>('select bytes from object_usage where scope = ?').pluck();
  const hasFile = db.prepare<[string], 1>('select 1 from object where file = ?').pluck();
  const scan = db.prepare<
    [{ scope: string; from: string; to: string | Buffer; limit: number }],
    StoredObject
  >(`
    select key, bytes, modified_at as modifiedAt from object
    where scope = :scope and key >= :from and key < :to order by key limit :limit`);
  const put = db.prepare<[Row]>(`
    insert into object (scope, key, file, bytes, modified_at) values (:scope, :key, :file, :bytes, :modifiedAt)
    on conflict do update set file = excluded.file, bytes = excluded.bytes, modified_at = excluded.modified_at`);
  const remove = db.prepare<[string, string]>('delete from object where scope = ? and key = ?');
  const use = db.prepare<[string, number]>(`
    insert into object_usage (scope, bytes) values (?, ?) on conflict do update set bytes = bytes + excluded.bytes`);

  return {
    find: (scope, key) => find.get(scope, key),
    usage: (scope) => usage.get(scope) ?? 0,
    hasFile: (file) => hasFile.get(file) === 1,
    scan: (scope, prefix, after, limit) =>
      scan.all({ scope, from: firstKey(prefix, after), to: endOfPrefix(prefix), limit }),
    put(row) {
      const former = find.get(row.scope, row.key);
      put.run(row);
      use.run(row.scope, row.bytes - (former?.bytes ?? 0));
      return former?.file;
    },
    remove(scope, key) {
      const former = find.get(scope, key);
      if (!former) return undefined;
      remove.run(scope, key);
      use.run(scope, -former.bytes);
      return former.file;
    },
  };
}
