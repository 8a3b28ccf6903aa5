/** Facts of deliveries are written by a trigger, so that an end and its fact are one transaction. */
const uuid = (hex: string) =>
  `lower(substr(${hex}, 1, 8) || '-' || substr(${hex}, 9, 4) || '-' || substr(${hex}, 13, 4) || '-' || substr(${hex}, 17, 4) || '-' || substr(${hex}, 21))`;

/** `autoincrement` ensures that no number is reused after the handled facts are deleted. */
export const ALERT_FACTS = `
  create table alert_fact (
    seq integer primary key autoincrement,
    kind text not null,
    namespace_id text,
    object_id text not null,
    body text not null,
    at integer not null
  ) strict;`;

export const ALERTS = `
  ${ALERT_FACTS}
  create trigger delivery_failed_fact after update of status on delivery
  when new.status in ('failed', 'dead') and old.status <> new.status begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    values ('delivery.failed', new.namespace_id, ${uuid('hex(new.webhook_id)')},
      json_object('plugin', new.plugin_id, 'event', new.event, 'instance', new.instance_id, 'attempts', new.attempts,
        'status', new.status, 'httpStatus', new.http_status),
      cast(unixepoch('subsec') * 1000 as integer));
  end;

  create table alert_setting (
    kind text not null,
    namespace_id text not null,
    name text not null,
    body text not null,
    sealed text,
    created_at integer not null,
    updated_at integer not null,
    primary key (kind, namespace_id, name)
  ) strict, without rowid;
  create table alert_cursor (name text primary key, value integer not null) strict, without rowid;
  insert into alert_cursor (name, value) values ('revision', 0);

  create table alert (
    id text primary key,
    version integer not null,
    namespace_id text not null,
    rule text not null,
    kind text not null,
    object_key text not null,
    group_key text not null,
    state text not null,
    first_at integer not null,
    last_at integer not null,
    resolved_at integer,
    body text not null
  ) strict, without rowid;
  create unique index alert_open on alert (namespace_id, rule, object_key) where state <> 'resolved';
  create index alert_object on alert (namespace_id, rule, object_key, id);
  create index alert_open_kind on alert (kind, last_at) where state <> 'resolved';
  create index alert_open_group on alert (group_key, id) where state <> 'resolved';
  create index alert_state on alert (state, id);
  create index alert_namespace on alert (namespace_id, id);
  create index alert_resolved on alert (resolved_at) where resolved_at is not null;

  create table alert_group (
    key text primary key,
    version integer not null,
    namespace_id text not null,
    rule text not null,
    flush_at integer,
    idle_at integer,
    body text not null
  ) strict, without rowid;
  create index alert_group_due on alert_group (flush_at) where flush_at is not null;
  create index alert_group_idle on alert_group (idle_at) where idle_at is not null;

  create table alert_notification (
    id text primary key,
    version integer not null,
    namespace_id text not null,
    group_key text not null,
    channel text not null,
    status text not null,
    next_at integer,
    created_at integer not null,
    body text not null
  ) strict, without rowid;
  create index alert_notification_due on alert_notification (next_at) where status = 'pending';
  create index alert_notification_pending on alert_notification (group_key, channel, id) where status = 'pending';
  create index alert_notification_group on alert_notification (group_key, id);
  create index alert_notification_ended on alert_notification (created_at) where status <> 'pending';`;
