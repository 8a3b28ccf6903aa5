import { existsSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { checkedVersion, type Migrations } from './migrate.ts';
import { createPrivateFile } from './private-file.ts';
import { storeError } from './store-error.ts';
import { countSealed } from './svc/sealed-secrets.ts';

/** Pages per step of a backup. Each step blocks the event loop for a few milliseconds. */
const STEP_PAGES = 2000;
const WAIT_MS = 5000;

/** Consistent view of a database at one moment. An open snapshot does not block writers. */
export interface Snapshot {
  /** Schema version of the file, which is the number of applied migrations. */
  schema: number;
  /** Copies the database into a new file with mode 0600. */
  copyTo(target: string): Promise<void>;
  close(): void;
}

/** Opens a snapshot of a file to which other processes can write. Throws STORE_ERROR if the file cannot be used. */
export function openSnapshot(file: string, migrations: Migrations): Snapshot {
  const sqlite = openForReading(file);
  try {
    const schema = checkedVersion(sqlite, migrations);
    sqlite.exec('begin');
    // The first read of a transaction fixes the snapshot. Without a fixed snapshot, the backup would restart at each
    // commit of another process.
    sqlite.prepare('select count(*) from sqlite_schema').get();
    return {
      schema,
      async copyTo(target) {
        try {
          createPrivateFile(target);
          await sqlite.backup(target, { progress: () => STEP_PAGES });
        } catch (error) {
          throw storeError(target, error);
        }
      },
      close: () => void sqlite.close(),
    };
  } catch (error) {
    sqlite.close();
    throw storeError(file, error);
  }
}

export interface Inspection {
  schema: number;
  knownSchema: number;
  /** Errors that SQLite found. The list is empty for an intact file. */
  faults: string[];
}

/**
 * Checks the structure of the whole file. Throws STORE_ERROR if the file cannot be read. Other processes can write at
 * the same time.
 */
export function inspectDatabase(file: string, migrations: Migrations): Inspection {
  const sqlite = openForReading(file);
  try {
    const schema = checkedVersion(sqlite, migrations);
    const found = sqlite.pragma('quick_check(5)') as Array<{ quick_check: string }>;
    const faults = found.map((row) => row.quick_check).filter((text) => text !== 'ok');
    return { schema, knownSchema: migrations.length, faults };
  } catch (error) {
    throw storeError(file, error);
  } finally {
    sqlite.close();
  }
}

/**
 * Counts the sealed values in a `svc.db` file by the id of their master key. Throws STORE_ERROR if the file
 * cannot be read.
 */
export function countSealedByKey(file: string): Map<string, number> {
  const sqlite = openForReading(file);
  try {
    return countSealed(sqlite);
  } catch (error) {
    throw storeError(file, error);
  } finally {
    sqlite.close();
  }
}

/** Returns the names of a namespace's secrets in a `svc.db` file. Throws STORE_ERROR if the file cannot be read. */
export function secretNames(file: string, namespaceId: string): Set<string> {
  const sqlite = openForReading(file);
  try {
    const hasTable = sqlite
      .prepare("select 1 from sqlite_schema where type = 'table' and name = 'secret'")
      .get();
    if (!hasTable) return new Set();
    const names = sqlite
      .prepare<[string], string>('select distinct name from secret where namespace_id = ?')
      .pluck()
      .all(namespaceId);
    return new Set(names);
  } catch (error) {
    throw storeError(file, error);
  } finally {
    sqlite.close();
  }
}

function openForReading(file: string): Sqlite.Database {
  try {
    // better-sqlite3 reports a missing file without an error code.
    if (!existsSync(file)) throw Object.assign(new Error(`${file} does not exist`), { code: 'ENOENT' });
    return new Sqlite(file, { readonly: true, timeout: WAIT_MS });
  } catch (error) {
    throw storeError(file, error);
  }
}
