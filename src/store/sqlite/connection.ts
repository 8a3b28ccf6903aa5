import type Sqlite from 'better-sqlite3';

/** After a burst the write-ahead log is cut back to this. */
const LOG_SIZE_BYTES = 64 * 1024 * 1024;

/** What every writing connection needs: durable commits, references checked. */
export function configureConnection(sqlite: Sqlite.Database): void {
  sqlite.pragma('journal_mode = wal');
  sqlite.pragma('synchronous = full');
  // On macOS fsync alone leaves the bytes in the drive's cache; elsewhere this changes nothing.
  sqlite.pragma('fullfsync = on');
  sqlite.pragma('foreign_keys = on');
  sqlite.pragma(`journal_size_limit = ${LOG_SIZE_BYTES}`);
}
