import type { Clock } from '../../../kit/time/clock.ts';
import type { StateStore, VectorIndex } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { PostgresKeyValue } from './key-value.ts';
import { postgresObjects } from './objects.ts';
import { PostgresVectors } from './vectors.ts';

/**
 * The state service's stores in PostgreSQL. `vectorIndex` is the local index of this node. Closing the store closes the
 * index and the database.
 */
export function postgresStateStore(
  database: PostgresDatabase,
  clock: Clock,
  vectorIndex: VectorIndex,
): StateStore {
  const vectors = new PostgresVectors(database, vectorIndex);
  return {
    entries: new PostgresKeyValue(database, 'stateEntry', clock),
    openObjects: ({ quotaBytes }) => postgresObjects(database, { quotaBytes, clock }),
    vectors,
    probe: () => database.probeWrites(),
    async close() {
      await vectors.close();
      await database.close();
    },
  };
}
