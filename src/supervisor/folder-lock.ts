import type { ServiceName } from '../contracts/index.ts';
import type { LoadedConfig } from '../kit/config/config.ts';
import { usesPostgres } from '../kit/config/store-url.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { Owner } from '../store/sqlite/lock-owner.ts';
import { acquireOwnerLock, type OwnerLock } from '../store/sqlite/owner-lock.ts';
import type { DataFolder } from './data-folder.ts';
import { serviceLock, startLabel } from './single-services.ts';

/** Label of a supervisor in its lock. `svc start` has the label of its command line. */
const SUPERVISOR = 'supervisor';

/**
 * Maximum time that a start waits for the owner lock. A process that is stopping still holds the lock for a moment.
 */
const LOCK_WAIT_MS = 1000;

/** Locks the data folder for a supervisor. Throws CONFLICT if another process holds the lock. */
export function lockFolder(folder: DataFolder, label = SUPERVISOR): Promise<OwnerLock> {
  return lock(folder.ownerLock, label, (owner) => folderInUse(folder, owner));
}

/**
 * Locks services of a data folder. With SQLite, one process owns the whole folder. With PostgreSQL, several processes
 * may run different services on one folder. Throws CONFLICT if another process runs one of the services.
 */
export async function lockServices(
  folder: DataFolder,
  services: readonly ServiceName[],
  label: string,
): Promise<AsyncDisposableStack> {
  const locks = new AsyncDisposableStack();
  try {
    for (const name of services) {
      const file = serviceLock(folder, name);
      locks.adopt(await lock(file, label, (owner) => serviceInUse(name, folder, owner)), (each) =>
        each.release(),
      );
    }
    return locks;
  } catch (error) {
    await locks.disposeAsync();
    throw error;
  }
}

/** Locks the data folder, or with PostgreSQL only one of its services, for `svc start`. */
export async function lockSingleService(
  name: ServiceName,
  folder: DataFolder,
  { config }: LoadedConfig,
): Promise<AsyncDisposableStack> {
  const label = startLabel(name);
  if (usesPostgres(config.store)) return lockServices(folder, [name], label);
  const locks = new AsyncDisposableStack();
  locks.adopt(await lockFolder(folder, label), (each) => each.release());
  return locks;
}

async function lock(
  file: string,
  label: string,
  failure: (owner: Owner | null, cause: unknown) => PlatformError,
): Promise<OwnerLock> {
  try {
    return await acquireOwnerLock({ file, waitMs: LOCK_WAIT_MS, label });
  } catch (error) {
    if (!(error instanceof PlatformError && error.code === 'CONFLICT')) throw error;
    const { owner } = error.details as { owner?: Owner | null };
    throw failure(owner ?? null, error);
  }
}

function folderInUse({ root }: DataFolder, owner: Owner | null): PlatformError {
  const isPlatform = owner === null || owner.label === SUPERVISOR;
  const what = isPlatform ? 'svc' : `\`${owner.label}\``;
  const stop = isPlatform ? 'Stop it with svc down' : `Stop pid ${owner.pid}`;
  return new PlatformError(
    'CONFLICT',
    `${what} is already running on ${root}${owner ? ` (pid ${owner.pid})` : ''}.`,
    {
      details: {
        alreadyRunning: isPlatform,
        dataDir: root,
        owner,
        hint: `${stop}, or set SVC_HOME=<folder> to use another data folder. With PostgreSQL, several processes may share a folder (docs/scale-out.md).`,
      },
    },
  );
}

function serviceInUse(name: ServiceName, { root }: DataFolder, owner: Owner | null): PlatformError {
  const by = owner ? ` by ${owner.label} (pid ${owner.pid})` : '';
  return new PlatformError('CONFLICT', `${name} already runs on ${root}${by}.`, {
    details: {
      dataDir: root,
      service: name,
      owner,
      hint: 'Stop that process, or set SVC_HOME=<folder> to start a second one with a data folder of its own.',
    },
  });
}
