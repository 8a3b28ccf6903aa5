import { FEED } from './gateway/feed.ts';
import { WEBHOOK_INBOX } from './gateway/inbox/schema.ts';
import { IDENTITY, WEBHOOK_SECRETS } from './gateway/schema.ts';
import { DATABASE_IDENTITY } from './identity.ts';
import { DRAINING_MEMBERS, MEMBERS } from './members.ts';
import { PLUGIN_LOCK } from './plugin-lock.ts';
import { RATE_COUNTS } from './rate-counters.ts';
import { CACHE_ENTRIES, OBJECTS, STATE_ENTRIES, VECTORS } from './state/schema.ts';
import { STORAGE_SETTINGS } from './storage-settings.ts';
import { NODE_COUNTS, TELEMETRY } from './telemetry/schema.ts';
import { RETENTION_INDEXES, SHARED_RUNS, WORKFLOW } from './workflow/schema.ts';
import { RUN_WRITE_FUNCTIONS } from './workflow/write-functions.ts';

export interface Migration {
  sql: string;
  /** Programs that were built for a schema version below `minVersion` no longer work after this migration. */
  minVersion: number;
}

/**
 * Migrations in order. The version of a database is the number of applied migrations. Released migrations must never
 * change.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    sql: `${MEMBERS} ${CACHE_ENTRIES} ${STATE_ENTRIES} ${OBJECTS} ${IDENTITY} ${WEBHOOK_SECRETS} ${WEBHOOK_INBOX} ${FEED} ${WORKFLOW}`,
    minVersion: 1,
  },
  { sql: RATE_COUNTS, minVersion: 1 },
  { sql: TELEMETRY, minVersion: 1 },
  { sql: SHARED_RUNS, minVersion: 1 },
  { sql: PLUGIN_LOCK, minVersion: 1 },
  { sql: DRAINING_MEMBERS, minVersion: 1 },
  { sql: VECTORS, minVersion: 1 },
  { sql: `${DATABASE_IDENTITY} ${STORAGE_SETTINGS} ${NODE_COUNTS} ${RETENTION_INDEXES}`, minVersion: 1 },
  { sql: RUN_WRITE_FUNCTIONS, minVersion: 1 },
];

/** Schema version that this program creates. */
export const CURRENT_SCHEMA = MIGRATIONS.length;
