import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { seconds } from '../../kit/duration.ts';
import { acquireOwnerLock, type OwnerLock } from '../../store/sqlite/index.ts';
import type { ProcessGroup } from '../group/process-group.ts';

const FILE = 'svc.db';
/** The lock files of siblings. */
const SIBLING = /^(svc\.db\.process-\d+)\.lock$/;
/** A gateway that is restarted finds its predecessor still writing its last answers. */
const WAIT_MS = seconds(5);

/**
 * The right to write `svc.db`. The first process holds it for all; each sibling holds a lock of its own, so that a new
 * first process takes over what its predecessor left only when no sibling of that one is still at work. Throws CONFLICT.
 */
export async function ownStore(dataDir: string, group: ProcessGroup): Promise<OwnerLock> {
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

/** Whoever was one at any time: the number of processes may have changed since. */
function siblingsOf(dataDir: string): string[] {
  return readdirSync(dataDir).flatMap((name) => SIBLING.exec(name)?.[1] ?? []);
}
