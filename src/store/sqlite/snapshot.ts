import { existsSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { checkedVersion, type Migrations } from './migrate.ts';
import { createPrivateFile } from './private-file.ts';
import { storeError } from './store-error.ts';

/** Pages a step copies: a step keeps the event loop, a few milliseconds each. */
const STEP_PAGES = 2000;
const WAIT_MS = 5000;

/** A database as it was at one moment, however much is written to it meanwhile. Writers are not held up. */
export interface Snapshot {
  /** How many migrations it has been through. */
  schema: number;
  /** Copies it into a new file, readable by its owner alone. */
  copyTo(target: string): Promise<void>;
  close(): void;
}

/**
 * Opens a file that other processes may be writing. The online backup would start over with each of their commits; an
 * open read transaction holds one state of the write-ahead log, and the backup copies that. Throws STORE_ERROR.
 */
export function openSnapshot(file: string, migrations: Migrations): Snapshot {
  const sqlite = openForReading(file);
  try {
    const schema = checkedVersion(sqlite, migrations);
    sqlite.exec('begin');
    // The moment: a transaction begins with its first read.
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
  /** What SQLite finds wrong; empty for a sound file. */
  faults: string[];
}

/** Reads a whole file and checks its structure; safe while others write it. Throws STORE_ERROR. */
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

/** The webhook secrets of an `svc.db` as they are sealed; safe while others write it. Throws STORE_ERROR. */
export function sealedSecrets(file: string): string[] {
  const sqlite = openForReading(file);
  try {
    return sqlite.prepare<[], string>('select current from webhook_secret').pluck().all();
  } catch (error) {
    throw storeError(file, error);
  } finally {
    sqlite.close();
  }
}

function openForReading(file: string): Sqlite.Database {
  try {
    // better-sqlite3 answers a missing file with an error of its own that carries no code.
    if (!existsSync(file)) throw Object.assign(new Error(`${file} does not exist`), { code: 'ENOENT' });
    return new Sqlite(file, { readonly: true, timeout: WAIT_MS });
  } catch (error) {
    throw storeError(file, error);
  }
}
