import { rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { PlatformError } from '../../kit/errors/errors.ts';
import { type Owner, readOwner } from './lock-owner.ts';
import { createPrivateFile } from './private-file.ts';
import { isBusy, storeError } from './store-error.ts';

export interface OwnerLockOptions {
  /** Path of the owned data file or folder. The lock is a separate file named `<file>.lock`. */
  file: string;
  /** Maximum time to wait for an owner that is shutting down. With 0, there is only one attempt. */
  waitMs: number;
  /**
   * Name of this process, such as `gateway`. Other processes that fail to get the lock show this name in their error
   * message.
   */
  label: string;
}

export interface OwnerLock {
  release(): void;
}

const POLL_MS = 25;

/**
 * Makes this process the exclusive owner of a file. Throws CONFLICT if another process owns the file. Lock files must
 * never be deleted, because two processes could then lock different files.
 */
export async function acquireOwnerLock({ file, waitMs, label }: OwnerLockOptions): Promise<OwnerLock> {
  const ownerFile = `${file}.owner`;
  const lock = await waitForLock(file, waitMs);
  if (!lock) throw inUse(file, readOwner(ownerFile));
  try {
    writeFileSync(ownerFile, JSON.stringify({ pid: process.pid, label } satisfies Owner), { mode: 0o600 });
  } catch (error) {
    lock.close();
    throw storeError(ownerFile, error);
  }
  return {
    release() {
      if (!lock.open) return;
      rmSync(ownerFile, { force: true });
      lock.close();
    },
  };
}

async function waitForLock(file: string, waitMs: number): Promise<Sqlite.Database | undefined> {
  for (let waited = 0; ; waited += POLL_MS) {
    const lock = tryLock(`${file}.lock`);
    if (lock || waited >= waitMs) return lock;
    await sleep(POLL_MS);
  }
}

function tryLock(lockFile: string): Sqlite.Database | undefined {
  let lock: Sqlite.Database | undefined;
  try {
    createPrivateFile(lockFile);
    lock = new Sqlite(lockFile, { timeout: 0 });
    lock.exec('begin exclusive');
    return lock;
  } catch (error) {
    lock?.close();
    if (isBusy(error)) return undefined;
    throw storeError(lockFile, error);
  }
}

function inUse(file: string, owner: Owner | undefined): PlatformError {
  const holder = owner ? `${owner.label} (pid ${owner.pid})` : 'another process';
  const stop = owner?.label.startsWith('svc start ') ? 'Stop that process' : 'Stop it with `svc down`';
  return new PlatformError(
    'CONFLICT',
    `${file} is in use by ${holder}. ${stop}, or set SVC_HOME to use another data folder.`,
    { details: { file, owner: owner ?? null } },
  );
}
