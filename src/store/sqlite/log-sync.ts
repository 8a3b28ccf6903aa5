import { closeSync, fdatasync, openSync } from 'node:fs';
import { storeError } from './store-error.ts';

/** The write-ahead log of an open database, to be brought to the disk by one of Node's own threads. */
export interface Log {
  /** Settles once every commit made before the call is on disk. */
  sync(): Promise<void>;
  close(): void;
}

/**
 * At `synchronous=NORMAL` SQLite appends a commit to the log and goes on; with this behind it the commit is as durable as
 * at FULL, which syncs as well, but on the event loop. Measured with runs of three plugin handlers: the loop stood still
 * for 40 % of the time, in which no handler got its next call; on a busy disk, for nine tenths. Checkpoints sync by
 * themselves at either setting. The log's file is the same until the last connection closes, and SQLite has no locks on
 * it that our descriptor could lose.
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
          // Whether the bytes are there nobody knows, and a second try would not tell: the system may have dropped
          // them. The process ends, and its successor goes on from what the disk has.
          if (error) throw storeError(name, error);
          resolve();
        });
      }),
    close: () => closeSync(fd),
  };
}
