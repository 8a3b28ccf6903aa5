import { existsSync } from 'node:fs';
import Sqlite from 'better-sqlite3';
import { PlatformError } from '../../kit/errors.ts';
import { type Logger, silentLogger } from '../../kit/logger.ts';
import { configureConnection } from './connection.ts';
import { createGroupCommit } from './group-commit.ts';
import { openLog } from './log-sync.ts';
import { checkedVersion, type Migrations, migrate } from './migrate.ts';
import { BLOCKING_WAIT_MS, BUSY_PATIENCE_MS, whileBusy } from './patience.ts';
import { createPrivateFile } from './private-file.ts';
import { storeError } from './store-error.ts';

export interface DatabaseOptions {
  file: string;
  migrations: Migrations;
  logger?: Logger;
  /** Opens an existing file of the current schema for reading alone. */
  readonly?: boolean;
  /** How long a call waits in all for another process's lock before it rejects; default 10 s. */
  busyPatienceMs?: number;
  /** Page size of a file we create: larger for large appended rows, the default 4096 for small rows in random order. */
  pageBytes?: number;
  /** What a power cut may take the last of: `synchronous=NORMAL`, no fsync per commit. The file stays sound. */
  losable?: boolean;
  /** A commit waits for the disk beside the event loop instead of on it; every promise settles as late as without. */
  syncBeside?: boolean;
  /** A shared library that brings more functions to this connection. */
  extension?: string;
}

/** One open SQLite file. Everything that fails for a reason an operator can mend rejects with STORE_ERROR naming the file. */
export interface Database {
  readonly file: string;
  prepare: Sqlite.Database['prepare'];
  /** Runs a query; what is queued by `write` and not yet committed is not seen, and whatever is seen is on disk. */
  read<T>(query: () => T): Promise<T>;
  /** Group commit: settles once `work` is on disk. See GroupCommit for what `work` may do. */
  write<T>(work: () => T): Promise<T>;
  pragma(source: string): unknown;
  /** Commits what is queued, then lets go of the file; later writes reject. */
  close(): Promise<void>;
}

/**
 * Opens a file with WAL, `synchronous=FULL` and foreign keys on, creates it (0600, its folder 0700) and brings its schema
 * up to date. Throws STORE_ERROR for a newer schema, a damaged or foreign file, and one that cannot be opened or written.
 * While a file is open here, never open and close it by other means in this process (`fs.copyFile`, `fs.readFile`):
 * POSIX drops all of a process's locks on a file when any of its descriptors closes.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { file, busyPatienceMs = BUSY_PATIENCE_MS } = options;
  let sqlite: Sqlite.Database;
  try {
    if (!options.readonly) createPrivateFile(file);
    // Several processes that create one file together meet locks that SQLite's own waiting does not cover.
    sqlite = await whileBusy(() => connect(options), busyPatienceMs);
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
  // better-sqlite3 answers a missing file and a missing folder with errors of its own that carry no code.
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
  // First of all: it has no effect once the file has pages.
  sqlite.pragma(`page_size = ${pageBytes}`);
  configureConnection(sqlite);
  if (losable) sqlite.pragma('synchronous = normal');
}

function wrap(sqlite: Sqlite.Database, options: DatabaseOptions): Database {
  const { file, busyPatienceMs = BUSY_PATIENCE_MS } = options;
  const log = options.syncBeside ? openLog(file) : undefined;
  const commits = createGroupCommit(sqlite, busyPatienceMs, log?.sync);
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
        const found = await whileBusy(query, busyPatienceMs);
        await commits.synced();
        return found;
      }),
    write: (work) => translated(() => commits.write(work)),
    close: () => (closing ??= close()),
  };
}
