/**
 * Tables with the sort order of delivery lists, maintained by triggers. Indexes over existing deliveries would block
 * the first start after an upgrade for minutes.
 */
export const DELIVERY_LISTS = `
  create table delivery_by_time (
    namespace_id text not null,
    received_at integer not null,
    position integer not null,
    primary key (namespace_id, received_at, position)
  ) strict, without rowid;
  create table delivery_by_status (
    namespace_id text not null,
    plugin_id text not null,
    event text not null,
    status text not null,
    received_at integer not null,
    position integer not null,
    primary key (namespace_id, plugin_id, event, status, received_at, position)
  ) strict, without rowid;

  create table delivery_unhandled (
    position integer primary key
  ) strict;

  create table delivery_progress (
    listed_from integer not null,
    bodiless_until integer not null
  ) strict;
  insert into delivery_progress (listed_from, bodiless_until)
  select coalesce(max(position) + 1, 0), 0 from delivery;

  create trigger delivery_inserted after insert on delivery begin
    insert or ignore into delivery_by_time values (new.namespace_id, new.received_at, new.position);
    insert or ignore into delivery_by_status
    values (new.namespace_id, new.plugin_id, new.event, new.status, new.received_at, new.position);
  end;
  create trigger delivery_unhandled_inserted after insert on delivery
  when new.status in ('refused', 'challenge', 'duplicate') begin
    insert or ignore into delivery_unhandled values (new.position);
  end;
  create trigger delivery_status_changed after update of status on delivery when old.status <> new.status begin
    update delivery_by_status set status = new.status
    where namespace_id = old.namespace_id and plugin_id = old.plugin_id and event = old.event and status = old.status
      and received_at = old.received_at and position = old.position;
  end;
  create trigger delivery_deleted after delete on delivery begin
    delete from delivery_unhandled where position = old.position;
    delete from delivery_by_time
    where namespace_id = old.namespace_id and received_at = old.received_at and position = old.position;
    delete from delivery_by_status
    where namespace_id = old.namespace_id and plugin_id = old.plugin_id and event = old.event and status = old.status
      and received_at = old.received_at and position = old.position;
  end;`;
