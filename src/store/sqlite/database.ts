import { existsSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { PlatformError } from '../../kit/errors/errors.ts';
import { type Logger, silentLogger } from '../../kit/telemetry/logger.ts';
import { BLOCKING_WAIT_MS, BUSY_TIMEOUT_MS, retryWhileBusy } from './busy-retry.ts';
import { configureConnection } from './connection.ts';
import { createGroupCommit } from './group-commit.ts';
import { checkedVersion, type Migrations, migrate } from './migrate.ts';
import { createPrivateFile } from './private-file.ts';
import { storeError } from './store-error.ts';
import { openWalSync } from './wal-sync.ts';

export interface DatabaseOptions {
  file: string;
  migrations: Migrations;
  logger?: Logger;
  /** Opens the file read-only. The file must exist and have the current schema. */
  readonly?: boolean;
  /** Total time that a call waits for the lock of another process before the call rejects. The default is 10 s. */
  busyTimeoutMs?: number;
  /** Page size of a new file, 4096 bytes by default. Larger pages suit large rows that are appended. */
  pageBytes?: number;
  /** Omits the fsync of each commit. A power cut can then lose the last commits, but the file stays consistent. */
  losable?: boolean;
  /**
   * Runs the fsync of commits on another thread instead of the event loop. Promises still settle only after the fsync.
   */
  syncBeside?: boolean;
  /** Path of a SQLite extension to load. */
  extension?: string;
}

/** An open SQLite file. Errors that an operator can fix are translated to STORE_ERROR with the name of the file. */
export interface Database {
  readonly file: string;
  prepare: Sqlite.Database['prepare'];
  /** Runs a query that does not see queued writes. Resolves once all data that the query read is on disk. */
  read<T>(query: () => T): Promise<T>;
  /**
   * Runs `work` in a transaction shared with other writes. Settles once the transaction is on disk. `work` must be
   * synchronous, must only use the database, and might run twice.
   */
  write<T>(work: () => T): Promise<T>;
  pragma(source: string): unknown;
  /** Commits queued writes, then closes the file. Later writes are rejected. */
  close(): Promise<void>;
}

/**
 * Opens a file, and migrates its schema unless `readonly` is set. Throws STORE_ERROR if the file cannot be used. The
 * file must not be opened by other means, because closing it would drop the locks of SQLite.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { file, busyTimeoutMs = BUSY_TIMEOUT_MS } = options;
  let sqlite: Sqlite.Database;
  try {
    if (!options.readonly) createPrivateFile(file);
    // The busy timeout of SQLite does not apply to some locks during the creation of a file.
    sqlite = await retryWhileBusy(() => connect(options), busyTimeoutMs);
  } catch (error) {
    throw storeError(file, error);
  }
  return wrap(sqlite, options);
}

function connect({
  file,
  migrations,
  logger = silentLogger,
  readonly = false,
  pageBytes = 4096,
  losable = false,
  syncBeside = false,
  extension,
}: DatabaseOptions): Sqlite.Database {
  // better-sqlite3 reports missing files and folders without an error code.
  if (readonly && !existsSync(file))
    throw Object.assign(new Error(`${file} does not exist`), { code: 'ENOENT' });
  const sqlite = new Sqlite(file, { readonly, timeout: BLOCKING_WAIT_MS });
  try {
    if (extension !== undefined) sqlite.loadExtension(extension);
    const version = checkedVersion(sqlite, migrations);
    if (readonly) requireCurrent(file, version, migrations);
    else configure(sqlite, pageBytes, losable);
    const applied = readonly ? 0 : migrate(sqlite, migrations);
    if (applied > 0)
      logger.info(`Migrated ${file} to schema ${migrations.length}`, { meta: { file, applied } });
    if (syncBeside) sqlite.pragma('synchronous = normal');
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

function requireCurrent(file: string, version: number, migrations: Migrations): void {
  if (version === migrations.length) return;
  throw new PlatformError(
    'STORE_ERROR',
    `${file} has an older schema (${version}; this version of svc reads ${migrations.length}). Start its service once with \`svc up\`, which brings it up to date.`,
    { details: { file, schema: version, knownSchema: migrations.length } },
  );
}

function configure(sqlite: Sqlite.Database, pageBytes: number, losable: boolean): void {
  // The page size must be set first, because it has no effect once the file has pages.
  sqlite.pragma(`page_size = ${pageBytes}`);
  configureConnection(sqlite);
  if (losable) sqlite.pragma('synchronous = normal');
}

function wrap(sqlite: Sqlite.Database, options: DatabaseOptions): Database {
  const { file, busyTimeoutMs = BUSY_TIMEOUT_MS } = options;
  const wal = options.syncBeside ? openWalSync(file) : undefined;
  const commits = createGroupCommit(sqlite, busyTimeoutMs, wal?.sync);
  let closing: Promise<void> | undefined;

  async function close(): Promise<void> {
    await commits.idle();
    wal?.close();
    sqlite.close();
  }
  function requireOpen(): void {
    if (!closing) return;
    throw new PlatformError('STORE_ERROR', `${file} is closed: its service is stopping.`, {
      details: { file },
    });
  }
  async function translated<T>(run: () => Promise<T>): Promise<T> {
    try {
      requireOpen();
      return await run();
    } catch (error) {
      throw storeError(file, error);
    }
  }
  return {
    file,
    prepare: sqlite.prepare.bind(sqlite),
    pragma: (source) => sqlite.pragma(source),
    read: (query) =>
      translated(async () => {
        const found = await retryWhileBusy(query, busyTimeoutMs);
        await commits.synced();
        return found;
      }),
    write: (work) => translated(() => commits.write(work)),
    close: () => (closing ??= close()),
  };
}
