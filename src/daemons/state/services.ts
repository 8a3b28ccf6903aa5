import { join } from 'node:path';
import { seconds } from '../../kit/duration.ts';
import type { StateStore } from '../../store/ports/index.ts';
import { acquireOwnerLock, type OwnerLock, sqliteStateStore } from '../../store/sqlite/index.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { createStateEntries, type StateEntries } from './domain/state-entries.ts';
import { startSweeping } from './domain/sweeping.ts';

/** A state daemon that is restarted finds its predecessor still writing its last answers. */
const LOCK_WAIT_MS = seconds(5);

export interface StateServices extends DaemonServices {
  entries: StateEntries;
  close(): Promise<void>;
}

/** Opens `state.db`, of which this daemon is the only owner. Throws CONFLICT when another one has it. */
export async function stateServices({ dataDir, clock, logger }: Resources): Promise<StateServices> {
  const file = join(dataDir, 'state.db');
  const lock = await acquireOwnerLock({ file, waitMs: LOCK_WAIT_MS, label: 'state' });
  const store = await openOrRelease(lock, () => sqliteStateStore({ dataDir, clock, logger }));
  const sweeping = startSweeping({ store: store.entries, clock, logger });
  return {
    entries: createStateEntries({ store: store.entries }),
    async close(): Promise<void> {
      await sweeping.stop();
      await store.close();
      lock.release();
    },
  };
}

async function openOrRelease(lock: OwnerLock, open: () => Promise<StateStore>): Promise<StateStore> {
  try {
    return await open();
  } catch (error) {
    lock.release();
    throw error;
  }
}
