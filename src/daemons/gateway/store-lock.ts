import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { seconds } from '../../kit/time/duration.ts';
import { acquireOwnerLock, type OwnerLock } from '../../store/sqlite/index.ts';
import type { PortShare } from '../process-protocol.ts';

const FILE = 'svc.db';
/** Matches the names of the lock files of further processes. */
const FURTHER = /^(svc\.db\.process-\d+)\.lock$/;
/** Maximum time to wait for the previous gateway process, which might not have finished its last writes. */
const WAIT_MS = seconds(5);

/**
 * Locks `svc.db`. If several processes share the port, each further process locks a separate file. Throws CONFLICT if
 * another process holds a lock.
 */
export async function lockStore(dataDir: string, portShare: PortShare | undefined): Promise<OwnerLock> {
  const { number, joins } = portShare ?? { number: 1, joins: false };
  if (number > 1) return take(join(dataDir, `${FILE}.process-${number}`), `gateway, process ${number}`);
  const lock = await take(join(dataDir, FILE), 'gateway');
  if (joins) return lock;
  try {
    for (const name of furtherLocksOf(dataDir)) (await take(join(dataDir, name), 'gateway')).release();
  } catch (error) {
    lock.release();
    throw error;
  }
  return lock;
}

function take(file: string, label: string): Promise<OwnerLock> {
  return acquireOwnerLock({ file, waitMs: WAIT_MS, label });
}

/**
 * Returns the lock files of further processes. The files are listed from the folder, because the previous gateway might
 * have had more processes.
 */
function furtherLocksOf(dataDir: string): string[] {
  return readdirSync(dataDir).flatMap((name) => FURTHER.exec(name)?.[1] ?? []);
}
