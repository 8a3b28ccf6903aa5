import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { seconds } from '../../kit/time/duration.ts';
import { acquireOwnerLock, type OwnerLock } from '../../store/sqlite/index.ts';
import type { ProcessGroup } from '../group/process-group.ts';

const FILE = 'svc.db';
/** Matches the names of siblings' lock files. */
const SIBLING = /^(svc\.db\.process-\d+)\.lock$/;
/** Time to wait for the previous gateway process, which may still be finishing its last writes. */
const WAIT_MS = seconds(5);

/**
 * Locks `svc.db`, or the lock file of this sibling. A primary first waits until all siblings of the previous primary
 * have ended. Throws CONFLICT if another process holds a lock.
 */
export async function lockStore(dataDir: string, group: ProcessGroup): Promise<OwnerLock> {
  if (group.role === 'sibling') {
    const { place } = group;
    return take(join(dataDir, `${FILE}.process-${place}`), `gateway, process ${place}`);
  }
  const lock = await take(join(dataDir, FILE), 'gateway');
  try {
    for (const name of siblingsOf(dataDir)) (await take(join(dataDir, name), 'gateway')).release();
  } catch (error) {
    lock.release();
    throw error;
  }
  return lock;
}

function take(file: string, label: string): Promise<OwnerLock> {
  return acquireOwnerLock({ file, waitMs: WAIT_MS, label });
}

/** Returns all siblings that have a lock file, because the previous gateway may have had more processes. */
function siblingsOf(dataDir: string): string[] {
  return readdirSync(dataDir).flatMap((name) => SIBLING.exec(name)?.[1] ?? []);
}
