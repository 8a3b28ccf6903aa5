import { existsSync, renameSync } from 'node:fs';
import { codeOf, PlatformError } from '../../../kit/errors/errors.ts';
import { acquireOwnerLock } from '../../../store/sqlite/owner-lock.ts';
import { storeError } from '../../../store/sqlite/store-error.ts';
import { findSupervisor } from '../../../supervisor/control-client.ts';
import { type DataFolder, ensureDataFolder } from '../../../supervisor/data-folder.ts';
import { isRunning } from '../../../supervisor/process-identity.ts';
import { readRunFile } from '../../../supervisor/run-file.ts';

/** Throws CONFLICT if a process of the platform uses this data folder. */
export function requireStopped(folder: DataFolder, operation: string): void {
  const supervisor = findSupervisor(folder);
  const left = readRunFile(folder)?.children.filter(isRunning) ?? [];
  if (!supervisor && left.length === 0) return;
  const pids = supervisor ? [supervisor.pid] : left.map(({ pid }) => pid);
  throw new PlatformError(
    'CONFLICT',
    `svc is running on ${folder.root} (pid ${pids.join(', ')}). Stop it before the ${operation}.`,
    {
      details: {
        pids,
        hint: supervisor ? 'svc down' : 'Its services are stopping. Try again in a few seconds.',
      },
    },
  );
}

/**
 * Runs `work` under the owner lock, which prevents a platform from starting on this folder. Throws CONFLICT if a
 * platform is running.
 */
export async function whileStopped<T>(
  folder: DataFolder,
  operation: string,
  work: () => T | Promise<T>,
): Promise<T> {
  requireStopped(folder, operation);
  ensureDataFolder(folder);
  const lock = await acquireOwnerLock({ file: folder.ownerLock, waitMs: 0, label: operation });
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/**
 * Moves the data folder to `aside`, then moves `next` to the data folder's path. Undoes the first move if the second
 * move fails. Returns the new path of the old data, or null if no data existed.
 */
export async function swapIn(folder: DataFolder, next: string, aside: string): Promise<string | null> {
  const { root } = folder;
  try {
    if (!existsSync(root)) {
      renameSync(next, root);
      return null;
    }
    return await whileStopped(folder, 'restore', () => {
      const former = unusedPath(aside);
      renameSync(root, former);
      try {
        renameSync(next, root);
      } catch (error) {
        renameSync(former, root);
        throw error;
      }
      return former;
    });
  } catch (error) {
    throw isMountPoint(error) ? mountPoint(root, error) : storeError(root, error);
  }
}

/**
 * Returns `path`, with a number appended if the path already exists. Without the number, two restores within one second
 * would use the same path.
 */
function unusedPath(path: string): string {
  for (let n = 1; ; n++) {
    const candidate = n === 1 ? path : `${path}-${n}`;
    if (!existsSync(candidate)) return candidate;
  }
}

const isMountPoint = (error: unknown): boolean => ['EBUSY', 'EXDEV'].includes(codeOf(error) ?? '');

function mountPoint(root: string, cause: unknown): PlatformError {
  return new PlatformError('STORE_ERROR', `${root} is a mount point and cannot be replaced.`, {
    details: { hint: 'Set SVC_HOME to a folder inside it, and restore there.' },
    cause,
  });
}
