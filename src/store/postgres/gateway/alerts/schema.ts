import type { ConcurrentIndex } from '../../concurrent-index.ts';

/** Facts of deliveries and runs are written by triggers, so that an end and its fact are one transaction. */
export const ALERTS = `
  create table svc.alert_fact (
    seq bigint generated always as identity primary key,
    kind text not null,
    namespace_id text collate "C",
    object_id text collate "C" not null,
    body text not null,
    at bigint not null
  );
  create function svc.note_failed_delivery() returns trigger language plpgsql as $$
  begin
    insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
    values ('delivery.failed', new.namespace_id, new.webhook_id::text,
      json_build_object('plugin', new.plugin_id, 'event', new.event, 'instance', new.instance_id, 'attempts', new.attempts,
        'status', new.status, 'httpStatus', new.http_status)::text,
      (extract(epoch from clock_timestamp()) * 1000)::bigint);
    return null;
  end $$;
  create trigger delivery_failed_fact after update of status on svc.delivery for each row
    when (new.status in ('failed', 'dead') and old.status is distinct from new.status)
    execute function svc.note_failed_delivery();
  create function svc.note_failed_run() returns trigger language plpgsql as $$
  begin
    insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
    values ('run.failed', new.tenant_id, new.id,
      json_build_object('workflow', new.workflow_id, 'run', new.kind, 'status', new.status)::text,
      coalesce(new.finished_at, (extract(epoch from clock_timestamp()) * 1000)::bigint));
    return null;
  end $$;
  create trigger run_failed_fact after update of status on svc.run for each row
    when (new.status in ('failed', 'timed_out') and old.status is distinct from new.status and new.parent_id is null)
    execute function svc.note_failed_run();

  create table svc.alert_setting (
    kind text not null,
    namespace_id text collate "C" not null,
    name text collate "C" not null,
    body text not null,
    sealed text,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (kind, namespace_id, name)
  );
  create table svc.alert_cursor (name text collate "C" primary key, value bigint not null);
  insert into svc.alert_cursor (name, value) values ('revision', 0);

  create table svc.alert (
    id text collate "C" primary key,
    version bigint not null,
    namespace_id text collate "C" not null,
    rule text collate "C" not null,
    kind text not null,
    object_key text collate "C" not null,
    group_key text collate "C" not null,
    state text not null,
    first_at bigint not null,
    last_at bigint not null,
    resolved_at bigint,
    body text not null
  );
  create unique index alert_open on svc.alert (namespace_id, rule, object_key) where state <> 'resolved';
  create index alert_object on svc.alert (namespace_id, rule, object_key, id);
  create index alert_open_kind on svc.alert (kind, last_at) where state <> 'resolved';
  create index alert_open_group on svc.alert (group_key, id) where state <> 'resolved';
  create index alert_state on svc.alert (state, id);
  create index alert_namespace on svc.alert (namespace_id, id);
  create index alert_resolved on svc.alert (resolved_at) where resolved_at is not null;

  create table svc.alert_group (
    key text collate "C" primary key,
    version bigint not null,
    namespace_id text collate "C" not null,
    rule text collate "C" not null,
    flush_at bigint,
    idle_at bigint,
    body text not null
  );
  create index alert_group_due on svc.alert_group (flush_at) where flush_at is not null;
  create index alert_group_idle on svc.alert_group (idle_at) where idle_at is not null;

  create table svc.alert_notification (
    id text collate "C" primary key,
    version bigint not null,
    namespace_id text collate "C" not null,
    group_key text collate "C" not null,
    channel text collate "C" not null,
    status text not null,
    next_at bigint,
    created_at bigint not null,
    body text not null
  );
  create index alert_notification_due on svc.alert_notification (next_at) where status = 'pending';
  create index alert_notification_pending on svc.alert_notification (group_key, channel, id) where status = 'pending';
  create index alert_notification_channel on svc.alert_notification (namespace_id, channel, id);
  create index alert_notification_group on svc.alert_notification (group_key, id);
  create index alert_notification_ended on svc.alert_notification (created_at) where status <> 'pending';`;

/** Facts about messages that endpoints did not take, and about endpoints that were disabled. */
export const MESSAGE_FACTS = `
  create function svc.note_dead_message() returns trigger language plpgsql as $$
  begin
    insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
    values ('delivery.failed', new.namespace_id, new.message_id || '/' || new.endpoint_id,
      json_build_object('message', new.message_id, 'endpoint', new.endpoint_id, 'attempts', new.attempts,
        'event', (select type from svc.message where id = new.message_id),
        'application', (select application from svc.outgoing_endpoint where id = new.endpoint_id))::text,
      coalesce(new.ended_at, (extract(epoch from clock_timestamp()) * 1000)::bigint));
    return null;
  end $$;
  create trigger message_dead_fact after update of status on svc.message_delivery for each row
    when (new.status = 'dead' and old.status is distinct from 'dead') execute function svc.note_dead_message();
  create function svc.note_disabled_endpoint() returns trigger language plpgsql as $$
  begin
    if tg_op = 'UPDATE' and new.disabled_reason in ('failures', 'gone') then
      insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
      values ('endpoint.disabled', new.namespace_id, new.id,
        json_build_object('application', new.application, 'reason', new.disabled_reason)::text,
        coalesce(new.disabled_at, (extract(epoch from clock_timestamp()) * 1000)::bigint));
    elsif old.disabled_reason in ('failures', 'gone') then
      insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
      values ('endpoint.enabled', old.namespace_id, old.id, '{}', old.updated_at);
    end if;
    return null;
  end $$;
  create trigger endpoint_disabled_fact after update of disabled_reason on svc.outgoing_endpoint for each row
    when (old.disabled_reason is distinct from new.disabled_reason) execute function svc.note_disabled_endpoint();
  create trigger endpoint_deleted_fact after delete on svc.outgoing_endpoint for each row
    when (old.disabled_reason in ('failures', 'gone')) execute function svc.note_disabled_endpoint();`;

/** Finds the alerts of an object. */
export const ALERT_OF_OBJECT: ConcurrentIndex = {
  name: 'alert_of_object',
  table: 'alert',
  columns: 'object_key, id',
};

/** The deliveries or runs that the object of a fact repeats, nearest first. Ids of messages are no UUIDs. */
export const ORIGINS = `case
  when kind in ('delivery.failed', 'delivery.recovered') and object_id ~ '^[0-9a-f-]{36}$' then (
    with recursive origin (id) as (
      select replay_of from svc.delivery
      where webhook_id = (case when object_id ~ '^[0-9a-f-]{36}$' then object_id::uuid end) and replay_of is not null
      union
      select d.replay_of from svc.delivery d join origin o on d.webhook_id = o.id where d.replay_of is not null)
    select coalesce(json_agg(id), '[]')::text from origin)
  when kind in ('run.failed', 'run.recovered') then (
    with recursive origin (id) as (
      select rerun_of from svc.run where id = object_id and rerun_of is not null
      union
      select r.rerun_of from svc.run r join origin o on r.id = o.id where r.rerun_of is not null)
    select coalesce(json_agg(id), '[]')::text from origin)
  end`;

const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/**
 * Facts about failures that were made good by a replay or rerun, and about deliveries that are stored as failed at once.
 * Copies of ended deliveries from SQLite have attempts.
 */
export const RECOVERY_FACTS = `
  create function svc.note_recovered_delivery() returns trigger language plpgsql as $$
  begin
    insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
    select 'delivery.recovered', new.namespace_id, new.replay_of::text, '{}', ${NOW}
    where exists (select from svc.delivery where webhook_id = new.replay_of and status in ('failed', 'dead'));
    return null;
  end $$;
  create trigger delivery_recovered_fact after update of status on svc.delivery for each row
    when (new.status = 'succeeded' and old.status is distinct from 'succeeded' and new.replay_of is not null)
    execute function svc.note_recovered_delivery();
  create trigger delivery_stored_failed_fact after insert on svc.delivery for each row
    when (new.status in ('failed', 'dead') and new.attempts = 0) execute function svc.note_failed_delivery();
  create function svc.note_recovered_message() returns trigger language plpgsql as $$
  begin
    insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
    values ('message.recovered', new.namespace_id, new.message_id || '/' || new.endpoint_id, '{}',
      coalesce(new.ended_at, ${NOW}));
    return null;
  end $$;
  create trigger message_recovered_fact after update of status on svc.message_delivery for each row
    when (new.status = 'succeeded' and old.status is distinct from 'succeeded' and old.is_replay = 1
      and (old.last_error is not null or coalesce(old.last_status, 200) not between 200 and 299))
    execute function svc.note_recovered_message();
  create function svc.note_recovered_run() returns trigger language plpgsql as $$
  begin
    insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
    select 'run.recovered', new.tenant_id, new.rerun_of, '{}', coalesce(new.finished_at, ${NOW})
    where exists (select from svc.run where id = new.rerun_of and status in ('failed', 'timed_out'));
    return null;
  end $$;
  create trigger run_recovered_fact after update of status on svc.run for each row
    when (new.status = 'succeeded' and old.status is distinct from 'succeeded' and new.rerun_of is not null)
    execute function svc.note_recovered_run();`;
