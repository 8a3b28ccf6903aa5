import { MAX_KEY_CHARS } from '../postgres/telemetry/texts.ts';

/** A table of the PostgreSQL schema with the SQLite query that fills it. */
export interface TableCopy {
  /** Database file in the data folder. */
  file: 'svc.db' | 'workflow.db' | 'state.db' | 'vectors.db' | 'telemetry.db';
  /** Table in the schema `svc`. Every column is filled. */
  target: string;
  /** Table or parenthesized query in SQLite. `:now` is the time of the copy. The default is the table `target`. */
  source?: string;
  /** Columns whose JSON can be stored in the SQLite table `large_value`. */
  large?: readonly string[];
  /** Identity column. Its sequence continues above the highest number that was ever used. */
  identity?: string;
}

/** Bodies of deliveries. Deliveries whose body is missing or expired have no row. */
const BODIES = `(
  select position, coalesce(d.body, b.body) as body from delivery d left join delivery_body b using (position)
  where coalesce(d.body, b.body) is not null)`;

/** Idempotency markers. PostgreSQL has one row per marker, so only the newest unexpired claim is copied. */
const MARKERS = `(
  with held as (
    select digest, state, expires_at, max(id) from delivery_marker where expires_at > :now group by digest)
  select digest, state, expires_at,
    iif(state = 'pending', (
      select webhook_id from delivery d
      where d.status in ('accepted', 'retrying', 'running') and d.status = 'running' and d.marker = held.digest
      order by position desc limit 1), null) as webhook_id
  from held
  union all
  select digest, 'done', expires_at, null from delivery_marker_old
  where expires_at > :now and digest not in (select digest from held))`;

/** Counts of events. PostgreSQL limits the length of indexed texts. */
const EVENT_COUNTS = `(
  select span, start, tenant_id, substr(type, 1, ${MAX_KEY_CHARS}) as type, substr(product, 1, ${MAX_KEY_CHARS}) as product,
    substr(actor, 1, ${MAX_KEY_CHARS}) as actor, sum(occurrences) as occurrences, sum(kept) as kept
  from event_count group by 1, 2, 3, 4, 5, 6)`;

/** Items of queues with their bodies, of which SQLite stores the large ones in a table of their own. */
const QUEUE_ITEMS = `(
  select position, queue_id, id, state, due_at, attempt, token, order_key, delivery_id, received_at, last_error, body_bytes,
    headers, coalesce(i.body, b.body) as body
  from queue_item i left join queue_body b using (position))`;

/** Facts of the gateway. Their numbers begin again, because PostgreSQL keeps those of runs in the same table. */
const ALERT_FACTS = '(select kind, namespace_id, object_id, body, at, seq from alert_fact)';

/** Tables with columns that only shared runs need. */
const BOOTS = '(select *, null as member, null as instance from boot)';
const RUNS = `(select *, 0 as notices, 0 as notices_read, '{}' as killed_by from run)`;
const SCHEDULES = '(select *, null as claimed_by from schedule)';

/** Tables in the order of copying. */
export const TABLE_COPIES: readonly TableCopy[] = [
  { file: 'svc.db', target: 'client' },
  { file: 'svc.db', target: 'refresh_token' },
  { file: 'svc.db', target: 'host' },
  { file: 'svc.db', target: 'minted_token' },
  { file: 'svc.db', target: 'revocation', identity: 'sequence' },
  { file: 'svc.db', target: 'access_role' },
  { file: 'svc.db', target: 'client_scopes' },
  { file: 'svc.db', target: 'audit_entry' },
  { file: 'svc.db', target: 'audit_head' },
  { file: 'svc.db', target: 'webhook_secret' },
  { file: 'svc.db', target: 'alert_setting' },
  { file: 'svc.db', target: 'alert' },
  { file: 'svc.db', target: 'alert_group' },
  { file: 'svc.db', target: 'alert_notification' },
  { file: 'svc.db', target: 'alert_fact', source: ALERT_FACTS, identity: 'seq' },
  { file: 'svc.db', target: 'connection' },
  { file: 'svc.db', target: 'secret' },
  { file: 'svc.db', target: 'cache_entry', source: 'key_value' },
  {
    file: 'svc.db',
    target: 'queue',
    source: '(select queue_id, namespace_id, name from queue)',
    identity: 'queue_id',
  },
  { file: 'svc.db', target: 'queue_setting' },
  { file: 'svc.db', target: 'queue_item', source: QUEUE_ITEMS, identity: 'position' },
  { file: 'svc.db', target: 'outgoing_endpoint' },
  { file: 'svc.db', target: 'message' },
  { file: 'svc.db', target: 'message_delivery' },
  { file: 'svc.db', target: 'message_attempt' },
  { file: 'svc.db', target: 'message_key' },
  { file: 'svc.db', target: 'delivery' },
  { file: 'svc.db', target: 'delivery_body', source: BODIES },
  { file: 'svc.db', target: 'delivery_marker', source: MARKERS },
  { file: 'workflow.db', target: 'boot', source: BOOTS, identity: 'fence' },
  { file: 'workflow.db', target: 'definition' },
  { file: 'workflow.db', target: 'run', source: RUNS, large: ['input', 'output', 'error'], identity: 'seq' },
  { file: 'workflow.db', target: 'job', large: ['outputs', 'error'] },
  { file: 'workflow.db', target: 'step', large: ['found', 'output', 'error'] },
  { file: 'workflow.db', target: 'attempt', large: ['error'] },
  { file: 'workflow.db', target: 'run_event', identity: 'id' },
  { file: 'workflow.db', target: 'run_log', identity: 'id' },
  { file: 'workflow.db', target: 'run_inbox', source: 'inbox' },
  { file: 'workflow.db', target: 'idempotency_key', source: 'idempotency' },
  { file: 'workflow.db', target: 'end_task' },
  { file: 'workflow.db', target: 'paused_workflow' },
  { file: 'workflow.db', target: 'run_usage', source: 'usage' },
  { file: 'workflow.db', target: 'schedule', source: SCHEDULES },
  { file: 'workflow.db', target: 'schedule_node' },
  { file: 'workflow.db', target: 'secret_approval' },
  { file: 'state.db', target: 'state_entry', source: 'key_value' },
  { file: 'telemetry.db', target: 'event_count', source: EVENT_COUNTS },
  { file: 'telemetry.db', target: 'permission_use' },
  { file: 'telemetry.db', target: 'telemetry_count' },
  { file: 'telemetry.db', target: 'telemetry_dropped' },
];

/** Tables that `objects.ts` fills from the object files. */
export const OBJECT_TABLES = ['state_object', 'state_object_chunk', 'state_object_usage'] as const;

/** Tables that `vectors.ts` fills from `vectors.db`. */
export const VECTOR_TABLES = ['vector_collection', 'vector_item'] as const;

/** Tables that `plugins.ts` fills from the lock file. */
export const PLUGIN_TABLES = ['plugin_lock'] as const;

/** Tables that `telemetry.ts` fills. Their partitions follow the table's name. */
export const RECORD_TABLES = ['log', 'event'] as const;

/**
 * Tables that are not copied. Each of these tables holds totals that are computed again, data about running processes,
 * or data that expires within a day.
 */
export const OTHER_TABLES = [
  'delivery_usage',
  'refused_request',
  'delivery_hour',
  'delivery_hour_change',
  'run_hour',
  'run_hour_change',
  'run_label',
  'state_entry_usage',
  'position_origin',
  'home_database',
  'alert_cursor',
  'feed',
  'feed_pruned',
  'member',
  'rate_count',
  'telemetry_day',
  'telemetry_position',
  'telemetry_writer',
  'telemetry_node_count',
  'schema_version',
] as const;
