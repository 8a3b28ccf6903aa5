import type { ConcurrentIndex } from '../concurrent-index.ts';

/** Indexes as in `sqlite/svc/list-indexes.ts`. */
export const LIST_INDEXES: readonly ConcurrentIndex[] = [
  {
    name: 'message_attempt_list',
    table: 'message_attempt',
    columns: 'endpoint_id, succeeded, started_at, message_id, number',
  },
  {
    name: 'alert_notification_backlog',
    table: 'alert_notification',
    columns: 'namespace_id, channel, created_at',
    where: `status = 'pending'`,
  },
  { name: 'alert_list_state', table: 'alert', columns: 'namespace_id, state, id' },
  { name: 'alert_list_kind', table: 'alert', columns: 'namespace_id, kind, id' },
  { name: 'alert_list_rule', table: 'alert', columns: 'namespace_id, rule, id' },
  {
    name: 'connection_list_failed',
    table: 'connection',
    columns: 'namespace_id, name',
    where: `status = 'failed'`,
  },
  {
    name: 'connection_list_expiry',
    table: 'connection',
    columns: 'expires_at',
    where: `status = 'active'`,
  },
];

/**
 * Indexes that `LIST_INDEXES` replace. All but the two of attempts exist only in databases to which a development version
 * applied migration 36.
 */
export const REPLACED_INDEXES: readonly string[] = [
  ...['message_attempt_endpoint', 'message_attempt_failed', 'alert_notification_waiting'],
  ...['alert_namespace_state', 'alert_namespace_kind', 'alert_namespace_rule'],
  ...['connection_failed', 'connection_expiry'],
];
