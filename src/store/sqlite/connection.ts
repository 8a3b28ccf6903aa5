import type Sqlite from 'better-sqlite3';

/** Size to which SQLite truncates the write-ahead log after a burst of writes. */
const LOG_SIZE_BYTES = 64 * 1024 * 1024;

export function configureConnection(sqlite: Sqlite.Database): void {
  sqlite.pragma('journal_mode = wal');
  sqlite.pragma('synchronous = full');
  // On macOS, a plain fsync leaves data in the cache of the drive. Other systems ignore this setting.
  sqlite.pragma('fullfsync = on');
  sqlite.pragma('foreign_keys = on');
  sqlite.pragma(`journal_size_limit = ${LOG_SIZE_BYTES}`);
}
