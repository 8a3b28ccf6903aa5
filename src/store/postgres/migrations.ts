import type { ConcurrentIndex } from './concurrent-index.ts';
import { ACCESS } from './gateway/access.ts';
import { ALERT_OF_OBJECT, ALERTS, MESSAGE_FACTS, RECOVERY_FACTS } from './gateway/alerts/schema.ts';
import { AUDIT } from './gateway/audit.ts';
import { CONNECTIONS } from './gateway/connections.ts';
import { FEED, FEED_SNAPSHOTS } from './gateway/feed.ts';
import { DELIVERY_HOURS } from './gateway/inbox/hour-schema.ts';
import { WEBHOOK_INBOX } from './gateway/inbox/schema.ts';
import { LIST_INDEXES, REPLACED_INDEXES } from './gateway/list-indexes.ts';
import { MESSAGE_TRACE, MESSAGES, PORTAL_URLS, UNUSED_INDEXES } from './gateway/messages/schema.ts';
import { QUEUES } from './gateway/queues/schema.ts';
import { REFUSED_REQUESTS } from './gateway/refused-requests.ts';
import { IDENTITY, WEBHOOK_SECRETS } from './gateway/schema.ts';
import { VAULT } from './gateway/vault.ts';
import { DATABASE_IDENTITY } from './identity.ts';
import { DRAINING_MEMBERS, MEMBER_SCHEMA, MEMBERS } from './member-schema.ts';
import { PLUGIN_LOCK } from './plugin-lock.ts';
import { RATE_COUNTS } from './rate-counters.ts';
import { CACHE_ENTRIES, OBJECTS, STATE_ENTRIES, VECTORS } from './state/schema.ts';
import { STORAGE_SETTINGS } from './storage-settings.ts';
import { PERMISSION_USES } from './telemetry/permission-uses.ts';
import { NODE_COUNTS, TELEMETRY } from './telemetry/schema.ts';
import { DELIVERY_TRACE, EVENT_TRACE, RUN_DELIVERIES, RUN_TRACE } from './trace-schema.ts';
import { RUN_APPROVAL } from './workflow/alert-facts.ts';
import { END_TASKS, RUN_HANDLES } from './workflow/end-tasks.ts';
import { CLAIM_INDEXES, PAUSES } from './workflow/pauses.ts';
import {
  RUN_HOURS_COUNTED,
  RUN_HOURS_OF_EARLIER,
  RUN_LABELS_AND_HOURS,
} from './workflow/run-search-schema.ts';
import { KILLED_BY, RETENTION_INDEXES, SCHEDULE_RELEASES, SHARED_RUNS, WORKFLOW } from './workflow/schema.ts';
import { SECRET_APPROVALS } from './workflow/secret-approvals.ts';
import { SIGNAL_SENDERS } from './workflow/sender-schema.ts';
import { RUN_WRITE_FUNCTIONS } from './workflow/write-functions.ts';

/**
 * A step of the schema. Nodes work meanwhile, so `sql` must not read large tables: they are locked until its
 * transaction ends. `index`, `drop` and `batch` run before `sql`, each in its own transactions. After a failure, all
 * of them run again.
 */
export interface Migration {
  sql?: string;
  /** Index that is built without keeping nodes from reading or writing the table. */
  index?: ConcurrentIndex;
  /** Indexes that are dropped without keeping nodes from working. They need not exist. */
  drop?: readonly string[];
  /** Statement that is repeated until it returns no row. It must record its progress. */
  batch?: string;
  /**
   * Programs that were built for a schema version below `minVersion` no longer work after this migration. A migration
   * that raises the number is a contract migration: `svc migrate` applies it when no such program runs any more.
   */
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
  { sql: MEMBER_SCHEMA, minVersion: 1 },
  { sql: SCHEDULE_RELEASES, minVersion: 1 },
  { sql: KILLED_BY, minVersion: 1 },
  { sql: RUN_WRITE_FUNCTIONS, minVersion: 1 },
  { sql: `${ACCESS} ${AUDIT}`, minVersion: 1 },
  { sql: FEED_SNAPSHOTS, minVersion: 1 },
  { sql: RUN_DELIVERIES, minVersion: 1 },
  { index: RUN_TRACE, minVersion: 1 },
  { index: DELIVERY_TRACE, minVersion: 1 },
  { index: EVENT_TRACE, minVersion: 1 },
  { sql: DELIVERY_HOURS, minVersion: 1 },
  { sql: RUN_LABELS_AND_HOURS, minVersion: 1 },
  { batch: RUN_HOURS_OF_EARLIER, sql: RUN_HOURS_COUNTED, minVersion: 1 },
  { sql: REFUSED_REQUESTS, minVersion: 1 },
  { sql: SIGNAL_SENDERS, minVersion: 1 },
  { sql: QUEUES, minVersion: 1 },
  { sql: PERMISSION_USES, minVersion: 1 },
  { sql: CONNECTIONS, minVersion: 1 },
  { sql: ALERTS, minVersion: 1 },
  { index: RUN_APPROVAL, minVersion: 1 },
  { sql: MESSAGES, minVersion: 1 },
  { sql: VAULT, minVersion: 1 },
  { sql: MESSAGE_FACTS, minVersion: 1 },
  { sql: SECRET_APPROVALS, minVersion: 1 },
  { index: MESSAGE_TRACE, minVersion: 1 },
  { index: ALERT_OF_OBJECT, minVersion: 1 },
  { sql: RECOVERY_FACTS, minVersion: 1 },
  // Empty: its statements kept nodes from writing while they built indexes. `LIST_INDEXES` replaces them.
  { minVersion: 1 },
  { sql: PORTAL_URLS, minVersion: 1 },
  ...LIST_INDEXES.map((index) => ({ index, minVersion: 1 })),
  { drop: REPLACED_INDEXES, minVersion: 1 },
  { drop: UNUSED_INDEXES, minVersion: 1 },
  { sql: END_TASKS, minVersion: 1 },
  { index: RUN_HANDLES, minVersion: 1 },
  { sql: PAUSES, minVersion: 1 },
  ...CLAIM_INDEXES.map((index) => ({ index, minVersion: 1 })),
];

/** Newest schema version that this program knows. */
export const CURRENT_SCHEMA = MIGRATIONS.length;

/** Returns whether the migration to `version` ends the support of older programs. */
export function isContract(migrations: readonly Migration[], version: number): boolean {
  return migrations[version - 1]!.minVersion > (migrations[version - 2]?.minVersion ?? 1);
}

/** Returns the oldest schema version on which this program runs. Contract migrations at the end of the list can wait. */
export function requiredSchema(migrations: readonly Migration[]): number {
  let version = migrations.length;
  while (version > 1 && isContract(migrations, version)) version--;
  return version;
}
