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
import { openLog } from './wal-sync.ts';

export interface DatabaseOptions {
  file: string;
  migrations: Migrations;
  logger?: Logger;
  /** Opens an existing file of the current schema read-only. */
  readonly?: boolean;
  /** Total time a call waits for another process's lock before it rejects; default 10 s. */
  busyTimeoutMs?: number;
  /**
   * Page size of a new file. Larger pages suit large appended rows; the default of 4096 suits small rows in random
   * order.
   */
  pageBytes?: number;
  /**
   * Allows a power cut to lose the last commits: `synchronous=NORMAL`, no fsync per commit. The file stays
   * consistent.
   */
  losable?: boolean;
  /** Syncs commits off the event loop. Promises still settle only once the commit is on disk. */
  syncBeside?: boolean;
  /** Path of a SQLite extension to load. */
  extension?: string;
}

/** One open SQLite file. Failures that an operator can fix reject with STORE_ERROR and name the file. */
export interface Database {
  readonly file: string;
  prepare: Sqlite.Database['prepare'];
  /** Runs a query. It sees no queued writes, and only data that is on disk. */
  read<T>(query: () => T): Promise<T>;
  /** Group commit: settles once `work` is on disk. GroupCommit documents the constraints on `work`. */
  write<T>(work: () => T): Promise<T>;
  pragma(source: string): unknown;
  /** Commits queued writes, then closes the file; later writes reject. */
  close(): Promise<void>;
}

/**
 * Opens a file (mode 0600, WAL) and migrates its schema. Throws STORE_ERROR for a newer schema, a damaged or foreign
 * file, or failed access. Never open the file by other means in this process: closing it drops all POSIX locks.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { file, busyTimeoutMs = BUSY_TIMEOUT_MS } = options;
  let sqlite: Sqlite.Database;
  try {
    if (!options.readonly) createPrivateFile(file);
    // SQLite's busy timeout does not cover the locks that processes meet when they create a file
    // concurrently.
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
      logger.info(`Brought ${file} to schema ${migrations.length}`, { meta: { file, applied } });
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
  const log = options.syncBeside ? openLog(file) : undefined;
  const commits = createGroupCommit(sqlite, busyTimeoutMs, log?.sync);
  let closing: Promise<void> | undefined;

  async function close(): Promise<void> {
    await commits.idle();
    log?.close();
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
