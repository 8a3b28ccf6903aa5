/**
 * Indexes that let filtered lists and metrics of messages, alerts and connections read only the rows that they need.
 * The index of attempts serves lists of all, of the failed and of the succeeded attempts.
 */
export const LIST_INDEXES = `
  drop index message_attempt_endpoint;
  drop index message_attempt_failed;
  create index message_attempt_endpoint on message_attempt (endpoint_id, succeeded, started_at, message_id, number);
  create index alert_notification_waiting on alert_notification (namespace_id, channel, created_at)
    where status = 'pending';
  create index alert_namespace_state on alert (namespace_id, state, id);
  create index alert_namespace_kind on alert (namespace_id, kind, id);
  create index alert_namespace_rule on alert (namespace_id, rule, id);
  create index connection_failed on connection (namespace_id, name) where status = 'failed';
  create index connection_expiry on connection (expires_at) where status = 'active';`;
