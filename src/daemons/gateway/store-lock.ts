import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { seconds } from '../../kit/time/duration.ts';
import { acquireOwnerLock, type OwnerLock } from '../../store/sqlite/index.ts';
import type { ProcessGroup } from '../group/process-group.ts';

const FILE = 'svc.db';
/** Lock files of siblings. */
const SIBLING = /^(svc\.db\.process-\d+)\.lock$/;
/** A restarted gateway may find its predecessor finishing its last writes. */
const WAIT_MS = seconds(5);

/**
 * Takes the write lock of `svc.db`. The primary holds it for all; each sibling has its own lock, so that a
 * new primary starts recovery only after all siblings of the previous one have ended. Throws CONFLICT.
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

/** All siblings that ever existed: the number of processes may have changed. */
function siblingsOf(dataDir: string): string[] {
  return readdirSync(dataDir).flatMap((name) => SIBLING.exec(name)?.[1] ?? []);
}
