import type { Clock } from '../../kit/time/clock.ts';
import type { SharedPluginStore } from '../ports/index.ts';
import type { PostgresDatabase } from './database.ts';
import { PostgresMembers } from './members.ts';
import { PostgresPluginLock } from './plugin-lock.ts';
import { postgresObjects } from './state/objects.ts';

/** The stores of shared plugins in PostgreSQL. Closing the store closes the database. */
export function postgresSharedPlugins(database: PostgresDatabase, clock: Clock): SharedPluginStore {
  return {
    lock: new PostgresPluginLock(database),
    members: new PostgresMembers(database.reserved),
    objects: postgresObjects(database, { quotaBytes: Number.POSITIVE_INFINITY, clock }),
    probe: () => database.probeWrites(),
    close: () => database.close(),
  };
}
