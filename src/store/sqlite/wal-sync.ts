import { closeSync, fdatasync, openSync } from 'node:fs';
import { storeError } from './store-error.ts';

/** Syncs the write-ahead log of an open database on a libuv thread. */
export interface WalSync {
  /** Resolves once all commits made before the call are on disk. */
  sync(): Promise<void>;
  close(): void;
}

/**
 * Opens the write-ahead log of a database with `synchronous=NORMAL`, whose commits SQLite does not sync itself. With
 * `FULL`, syncs blocked the event loop for 40 % of the time.
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
          // After a failed fsync, the kernel may have dropped the data, so a retry proves nothing. The process crashes
          // and restarts from the state on disk.
          if (error) throw storeError(name, error);
          resolve();
        });
      }),
    close: () => closeSync(fd),
  };
}
