import type { Clock } from '../../kit/time/clock.ts';
import type { SharedPluginStore } from '../ports/index.ts';
import type { PostgresDatabase } from './database.ts';
import { PostgresFeed } from './gateway/feed.ts';
import { PostgresMembers } from './members.ts';
import { PostgresPluginLock } from './plugin-lock.ts';
import { postgresObjects } from './state/objects.ts';

/** The marketplace's stores in PostgreSQL. Closing the store closes the database. */
export function postgresSharedPlugins(database: PostgresDatabase, clock: Clock): SharedPluginStore {
  const feed = new PostgresFeed(database.reserved);
  return {
    lock: new PostgresPluginLock(database, feed),
    members: new PostgresMembers(database.reserved),
    feed,
    objects: postgresObjects(database, { quotaBytes: Number.POSITIVE_INFINITY, clock }),
    probe: () => database.probeWrites(),
    close: () => database.close(),
  };
}
