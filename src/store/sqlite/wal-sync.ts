import { closeSync, fdatasync, openSync } from 'node:fs';
import { storeError } from './store-error.ts';

/** Syncs the write-ahead log of an open database on a libuv thread. */
export interface Log {
  /** Resolves once every commit made before the call is on disk. */
  sync(): Promise<void>;
  close(): void;
}

/**
 * At `synchronous=NORMAL` SQLite does not sync commits. This sync makes them as durable as FULL, off the event loop,
 * which FULL blocked for 40 % of the time.
 */
export function openLog(file: string): Log {
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
          // After a failed fsync the kernel may have dropped the pages, so a retry proves nothing. Crash; the
          // next process continues from the disk's state.
          if (error) throw storeError(name, error);
          resolve();
        });
      }),
    close: () => closeSync(fd),
  };
}
