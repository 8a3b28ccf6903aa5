/** Facts of deliveries are written by a trigger, so that an end and its fact are one transaction. */
const uuid = (hex: string) =>
  `lower(substr(${hex}, 1, 8) || '-' || substr(${hex}, 9, 4) || '-' || substr(${hex}, 13, 4) || '-' || substr(${hex}, 17, 4) || '-' || substr(${hex}, 21))`;

/** The deliveries that the object of a fact replays, nearest first. Ids of messages are no hexadecimal numbers. */
export const DELIVERY_ORIGINS = `case when kind in ('delivery.failed', 'delivery.recovered') then (
    with recursive origin (id) as (
      select replay_of from delivery where webhook_id = unhex(object_id, '-') and replay_of is not null
      union
      select d.replay_of from delivery d join origin o on d.webhook_id = o.id where d.replay_of is not null)
    select json_group_array(${uuid('hex(id)')}) from origin) end`;

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
  create index alert_notification_channel on alert_notification (namespace_id, channel, id);
  create index alert_notification_group on alert_notification (group_key, id);
  create index alert_notification_ended on alert_notification (created_at) where status <> 'pending';`;

/** Facts about messages that endpoints did not take, and about endpoints that were disabled. */
export const MESSAGE_FACTS = `
  create trigger message_dead_fact after update of status on message_delivery
  when new.status = 'dead' and old.status <> 'dead' begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    select 'delivery.failed', new.namespace_id, new.message_id || '/' || new.endpoint_id,
      json_object('message', new.message_id, 'endpoint', new.endpoint_id, 'attempts', new.attempts,
        'event', (select type from message where id = new.message_id),
        'application', (select application from outgoing_endpoint where id = new.endpoint_id)),
      coalesce(new.ended_at, cast(unixepoch('subsec') * 1000 as integer));
  end;
  create trigger endpoint_disabled_fact after update of disabled_reason on outgoing_endpoint
  when new.disabled_reason in ('failures', 'gone') and old.disabled_reason is not new.disabled_reason begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    values ('endpoint.disabled', new.namespace_id, new.id,
      json_object('application', new.application, 'reason', new.disabled_reason),
      coalesce(new.disabled_at, cast(unixepoch('subsec') * 1000 as integer)));
  end;
  create trigger endpoint_enabled_fact after update of disabled_reason on outgoing_endpoint
  when old.disabled_reason in ('failures', 'gone') and coalesce(new.disabled_reason, '') not in ('failures', 'gone') begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    values ('endpoint.enabled', new.namespace_id, new.id, '{}', new.updated_at);
  end;
  create trigger endpoint_deleted_fact after delete on outgoing_endpoint
  when old.disabled_reason in ('failures', 'gone') begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    values ('endpoint.enabled', old.namespace_id, old.id, '{}', old.updated_at);
  end;`;

const NOW = `cast(unixepoch('subsec') * 1000 as integer)`;
/** Name of the newest position at which a delivery was stored as failed. Retention replaces rows, which must not count. */
const POSITION = `'failed position'`;

/**
 * Facts about failures that were made good by a replay, and about deliveries that are stored as failed at once. Only the
 * success of a replay is recorded, so that ordinary deliveries cost nothing.
 */
export const RECOVERY_FACTS = `
  create trigger delivery_recovered_fact after update of status on delivery
  when new.status = 'succeeded' and old.status <> 'succeeded' and new.replay_of is not null begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    select 'delivery.recovered', new.namespace_id, ${uuid('hex(new.replay_of)')}, '{}', ${NOW}
    where exists (select 1 from delivery where webhook_id = new.replay_of and status in ('failed', 'dead'));
  end;
  insert into alert_cursor (name, value) select ${POSITION}, coalesce(max(position), 0) from delivery;
  create trigger delivery_stored_failed_fact after insert on delivery
  when new.status in ('failed', 'dead') and new.attempts = 0
    and new.position > (select value from alert_cursor where name = ${POSITION}) begin
    update alert_cursor set value = new.position where name = ${POSITION};
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    values ('delivery.failed', new.namespace_id, ${uuid('hex(new.webhook_id)')},
      json_object('plugin', new.plugin_id, 'event', new.event, 'instance', new.instance_id, 'attempts', 1,
        'status', new.status, 'httpStatus', new.http_status), ${NOW});
  end;
  create trigger message_recovered_fact after update of status on message_delivery
  when new.status = 'succeeded' and old.status <> 'succeeded' and old.is_replay = 1
    and (old.last_error is not null or coalesce(old.last_status, 200) not between 200 and 299) begin
    insert into alert_fact (kind, namespace_id, object_id, body, at)
    values ('message.recovered', new.namespace_id, new.message_id || '/' || new.endpoint_id, '{}',
      coalesce(new.ended_at, ${NOW}));
  end;`;
