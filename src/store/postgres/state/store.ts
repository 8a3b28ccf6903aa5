import type { Clock } from '../../../kit/time/clock.ts';
import type { StateStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { PostgresMonitor } from '../database-health.ts';
import { PostgresKeyValue } from './key-value.ts';
import { postgresObjects } from './objects.ts';

/** The state service's stores in PostgreSQL. Closing the store closes the database. */
export function postgresStateStore(database: PostgresDatabase, clock: Clock): StateStore {
  return {
    entries: new PostgresKeyValue(database, 'stateEntry', clock),
    openObjects: ({ quotaBytes }) => postgresObjects(database, { quotaBytes, clock }),
    monitor: new PostgresMonitor(database),
    probe: () => database.probeWrites(),
    close: () => database.close(),
  };
}
