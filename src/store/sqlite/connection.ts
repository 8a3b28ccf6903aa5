import type Sqlite from 'better-sqlite3';

/** Size that the write-ahead log is truncated to after a burst. */
const LOG_SIZE_BYTES = 64 * 1024 * 1024;

/** Settings of every writing connection: durable commits, checked foreign keys. */
export function configureConnection(sqlite: Sqlite.Database): void {
  sqlite.pragma('journal_mode = wal');
  sqlite.pragma('synchronous = full');
  // On macOS, fsync alone leaves data in the drive's cache; other systems ignore this.
  sqlite.pragma('fullfsync = on');
  sqlite.pragma('foreign_keys = on');
  sqlite.pragma(`journal_size_limit = ${LOG_SIZE_BYTES}`);
}
