import type Sqlite from 'better-sqlite3';
import { PlatformError } from '../../kit/errors/errors.ts';

/**
 * SQL statements by schema version. Entry n migrates from version n to n + 1. Released entries must never change,
 * because a database runs each entry only once.
 */
export type Migrations = readonly string[];

/**
 * Returns the schema version of the file. Throws STORE_ERROR for a newer schema and for databases of other programs.
 */
export function checkedVersion(sqlite: Sqlite.Database, migrations: Migrations): number {
  // The tables are read first: another process may create them meanwhile, and sets the version in the same transaction.
  const tables = sqlite.prepare<[], number>('select count(*) from sqlite_schema').pluck().get();
  const version = sqlite.pragma('user_version', { simple: true }) as number;
  const file = sqlite.name;
  if (version > migrations.length) {
    throw new PlatformError(
      'STORE_ERROR',
      `${file} was written by a newer version of svc (schema ${version}; this one knows ${migrations.length}). Install that version again, or restore a backup made with this one.`,
      { details: { file, schema: version, knownSchema: migrations.length } },
    );
  }
  if (version === 0 && tables !== 0) {
    throw new PlatformError(
      'STORE_ERROR',
      `${file} is a database of another program. Move it away, or set SVC_HOME to another folder.`,
      { details: { file } },
    );
  }
  return version;
}

/**
 * Applies pending migrations, each in its own transaction. Returns the number of applied migrations. Several processes
 * can call this function at once.
 */
export function migrate(sqlite: Sqlite.Database, migrations: Migrations): number {
  for (let applied = 0; ; applied++) {
    sqlite.exec('begin immediate');
    try {
      // Another process might have migrated the file before this transaction started.
      const version = checkedVersion(sqlite, migrations);
      const sql = migrations[version];
      if (sql !== undefined) sqlite.exec(sql);
      // Writing the version detects a read-only file, even if no migration is pending. Without a pending migration, the
      // write is rolled back.
      sqlite.pragma(`user_version = ${version + 1}`);
      sqlite.exec(sql === undefined ? 'rollback' : 'commit');
      if (sql === undefined) return applied;
    } catch (error) {
      if (sqlite.inTransaction) sqlite.exec('rollback');
      throw error;
    }
  }
}
