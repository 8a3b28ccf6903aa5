import { closeSync, fdatasync, openSync } from 'node:fs';
import { storeError } from './store-error.ts';

/** Syncs the write-ahead log of an open database on a libuv thread. */
export interface WalSync {
  /** Resolves once all commits made before the call are on disk. */
  sync(): Promise<void>;
  close(): void;
}

/**
 * Opens the write-ahead log of a database with `synchronous=NORMAL`, for which SQLite does not sync commits. SQLite's
 * own syncs blocked the event loop 40 % of the time.
 */
export function openWalSync(file: string): WalSync {
  const name = `${file}-wal`;
  let fd: number;
  try {
    fd = openSync(name, 'r');
  } catch (error) {
    throw storeError(name, error);
  }
  return {
    sync: () =>
      new Promise((resolve) => {
        fdatasync(fd, (error) => {
          // After a failed fsync, a retry could succeed although the kernel has discarded the data. The process
          // therefore crashes and restarts with the data on disk.
          if (error) throw storeError(name, error);
          resolve();
        });
      }),
    close: () => closeSync(fd),
  };
}
