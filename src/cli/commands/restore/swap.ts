import { existsSync, renameSync } from 'node:fs';
import { codeOf, PlatformError } from '../../../kit/errors.ts';
import { acquireOwnerLock } from '../../../store/sqlite/owner-lock.ts';
import { storeError } from '../../../store/sqlite/store-error.ts';
import { findSupervisor } from '../../supervisor/control-client.ts';
import { type DataFolder, ensureDataFolder } from '../../supervisor/data-folder.ts';
import { isRunning } from '../../supervisor/process-identity.ts';
import { readRunFile } from '../../supervisor/run-file.ts';

/** Throws CONFLICT while anything of the platform runs on this folder. */
export function requireStopped(folder: DataFolder, what: string): void {
  const supervisor = findSupervisor(folder);
  const left = readRunFile(folder)?.children.filter(isRunning) ?? [];
  if (!supervisor && left.length === 0) return;
  const pids = supervisor ? [supervisor.pid] : left.map(({ pid }) => pid);
  throw new PlatformError(
    'CONFLICT',
    `svc runs on ${folder.root} (pid ${pids.join(', ')}); ${what} needs it stopped.`,
    {
      details: {
        pids,
        hint: supervisor ? 'svc down' : 'Its services are finishing; try again in some seconds.',
      },
    },
  );
}

/** Runs `work` while nothing else can start on this folder. Throws CONFLICT when something has. */
export async function whileStopped<T>(folder: DataFolder, what: string, work: () => T): Promise<T> {
  requireStopped(folder, what);
  ensureDataFolder(folder);
  const lock = await acquireOwnerLock({ file: folder.ownerLock, waitMs: 0, label: what });
  try {
    return work();
  } finally {
    lock.release();
  }
}

/** Puts `next` in the data folder's place and keeps what was there as `aside`; both by renaming, so both are whole. */
export async function swapIn(folder: DataFolder, next: string, aside: string): Promise<string | null> {
  const { root } = folder;
  try {
    if (!existsSync(root)) {
      renameSync(next, root);
      return null;
    }
    return await whileStopped(folder, 'restore', () => {
      renameSync(root, aside);
      try {
        renameSync(next, root);
      } catch (error) {
        renameSync(aside, root);
        throw error;
      }
      return aside;
    });
  } catch (error) {
    throw isMountPoint(error) ? mountPoint(root, error) : storeError(root, error);
  }
}

const isMountPoint = (error: unknown): boolean => ['EBUSY', 'EXDEV'].includes(codeOf(error) ?? '');

function mountPoint(root: string, cause: unknown): PlatformError {
  return new PlatformError('STORE_ERROR', `${root} is a mount point: it cannot be replaced as a whole.`, {
    details: { hint: 'Point SVC_HOME at a folder inside of it, and restore there.' },
    cause,
  });
}
