import type { Clock } from '../../../kit/time/clock.ts';
import type { StateStore, VectorIndex } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { PostgresMonitor } from '../database-health.ts';
import { PostgresKeyValue } from './key-value.ts';
import { postgresObjects } from './objects.ts';
import { PostgresVectors } from './vectors.ts';

export interface PostgresStateOptions {
  clock: Clock;
  /** Local index of this node for searches of vectors. */
  vectorIndex: VectorIndex;
  /** Replaces the clock of the database in tests. */
  leaseClock?: Clock | undefined;
}

/** The state service's stores in PostgreSQL. Closing the store closes the index and the database. */
export function postgresStateStore(
  database: PostgresDatabase,
  { clock, vectorIndex, leaseClock }: PostgresStateOptions,
): StateStore {
  const vectors = new PostgresVectors(database, vectorIndex);
  return {
    entries: new PostgresKeyValue(database, 'stateEntry', { leaseClock }),
    openObjects: ({ quotaBytes }) => postgresObjects(database, { quotaBytes, clock }),
    vectors,
    monitor: new PostgresMonitor(database),
    probe: () => database.probeWrites(),
    async close() {
      await vectors.close();
      await database.close();
    },
  };
}
