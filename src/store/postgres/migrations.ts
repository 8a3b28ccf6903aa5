import { ACCESS } from './gateway/access.ts';
import { AUDIT } from './gateway/audit.ts';
import { FEED } from './gateway/feed.ts';
import { WEBHOOK_INBOX } from './gateway/inbox/schema.ts';
import { IDENTITY, WEBHOOK_SECRETS } from './gateway/schema.ts';
import { MEMBERS } from './members.ts';
import { PLUGIN_LOCK } from './plugin-lock.ts';
import { RATE_COUNTS } from './rate-counters.ts';
import { CACHE_ENTRIES, OBJECTS, STATE_ENTRIES } from './state/schema.ts';
import { TELEMETRY } from './telemetry/schema.ts';
import { SHARED_RUNS, WORKFLOW } from './workflow/schema.ts';

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
  { sql: `${ACCESS} ${AUDIT}`, minVersion: 1 },
];

/** Schema version that this program creates. */
export const CURRENT_SCHEMA = MIGRATIONS.length;
