/** Indexes as in `sqlite/svc/list-indexes.ts`. */
export const LIST_INDEXES = `
  drop index svc.message_attempt_endpoint;
  drop index svc.message_attempt_failed;
  create index message_attempt_endpoint on svc.message_attempt (endpoint_id, succeeded, started_at, message_id, number);
  create index alert_notification_waiting on svc.alert_notification (namespace_id, channel, created_at)
    where status = 'pending';
  create index alert_namespace_state on svc.alert (namespace_id, state, id);
  create index alert_namespace_kind on svc.alert (namespace_id, kind, id);
  create index alert_namespace_rule on svc.alert (namespace_id, rule, id);
  create index connection_failed on svc.connection (namespace_id, name) where status = 'failed';
  create index connection_expiry on svc.connection (expires_at) where status = 'active';`;
