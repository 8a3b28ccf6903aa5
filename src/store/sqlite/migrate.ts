import type Sqlite from 'better-sqlite3';
import { PlatformError } from '../../kit/errors.ts';

/**
 * The SQL that brings a schema from version n to n+1, at index n. Never edited once released: a file knows by its
 * `user_version` how many of them it has been through.
 */
export type Migrations = readonly string[];

/** The file's schema version. Throws STORE_ERROR for a newer one than ours and for somebody else's database. */
export function checkedVersion(sqlite: Sqlite.Database, migrations: Migrations): number {
  const version = sqlite.pragma('user_version', { simple: true }) as number;
  const file = sqlite.name;
  if (version > migrations.length) {
    throw new PlatformError(
      'STORE_ERROR',
      `${file} was written by a newer version of svc (schema ${version}; this one knows ${migrations.length}). Install that version again, or restore a backup made with this one.`,
      { details: { file, schema: version, knownSchema: migrations.length } },
    );
  }
  const tables = sqlite.prepare<[], number>('select count(*) from sqlite_schema').pluck().get();
  if (version === 0 && tables !== 0) {
    throw new PlatformError(
      'STORE_ERROR',
      `${file} is a database of another program. Move it away, or set SVC_HOME to another folder.`,
      { details: { file } },
    );
  }
  return version;
}

/** Applies what is missing, each step in its own transaction; several processes may do so at once. Returns the steps applied. */
export function migrate(sqlite: Sqlite.Database, migrations: Migrations): number {
  for (let applied = 0; ; applied++) {
    sqlite.exec('begin immediate');
    try {
      // Read again under the lock: another process may have been here since.
      const version = checkedVersion(sqlite, migrations);
      const sql = migrations[version];
      if (sql !== undefined) sqlite.exec(sql);
      // Tried even when nothing is left to do, and then rolled back: a read-only file is refused now, not at its first write.
      sqlite.pragma(`user_version = ${version + 1}`);
      sqlite.exec(sql === undefined ? 'rollback' : 'commit');
      if (sql === undefined) return applied;
    } catch (error) {
      if (sqlite.inTransaction) sqlite.exec('rollback');
      throw error;
    }
  }
}
