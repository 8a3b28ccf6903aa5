import { days } from '../../../kit/time/duration.ts';
import { SPANS } from '../../telemetry/event-totals.ts';
import { DATABASE_TIME } from '../database-clock.ts';

export const DAY_MS = days(1);
/**
 * Number of record ids per ms. An id starts with the arrival time of its record, so that a crash of the server cannot
 * repeat an id.
 */
export const IDS_PER_MS = 100;
/** Days before the current one that accept records. Records of an earlier time get the start of the first such day. */
export const DAYS_BEHIND = 3;
/** Days after the current one for which partitions are created. */
export const DAYS_AHEAD = 3;

/** Tables of log records and events, with one partition per day in UTC. */
const RECORDS = `
  create table svc.log (
    id bigint not null,
    time bigint not null,
    level smallint not null,
    service text not null,
    tenant_id text,
    request_id text,
    trace_id text,
    span_id text,
    plugin_id text,
    run_id text,
    source text not null,
    layer text not null,
    message text not null,
    meta text,
    extra text,
    words tsvector not null,
    primary key (time, id)
  ) partition by range (time);
  create index log_id on svc.log (id);
  create index log_tenant on svc.log (tenant_id, time, id) where tenant_id is not null;
  create index log_request on svc.log (request_id) where request_id is not null;
  create index log_trace on svc.log (trace_id) where trace_id is not null;
  create index log_plugin on svc.log (plugin_id, time, id) where plugin_id is not null;
  create index log_run on svc.log (run_id, time, id) where run_id is not null;
  create index log_words on svc.log using gin (words);

  create table svc.event (
    id bigint not null,
    event_id text not null,
    type text not null,
    ts bigint not null,
    ingest_ts bigint not null,
    product text not null,
    version text not null,
    run_id text not null,
    tenant_id text,
    actor text,
    actor_key text not null,
    ctx text,
    payload text,
    occurrences bigint not null,
    primary key (ts, id)
  ) partition by range (ts);
  create index event_number on svc.event (id);
  create index event_type on svc.event (type, ts, id);
  create index event_product on svc.event (product, ts, id);
  create index event_tenant on svc.event (tenant_id, ts, id);`;

/**
 * Tables of counts, partitions and writers. `telemetry_day` has one row per partition. Its `row_bytes` is the size per
 * record, measured before single records of the partition are deleted.
 */
const SUMS = `
  create table svc.event_count (
    span bigint not null,
    start bigint not null,
    tenant_id text not null,
    type text not null,
    product text not null,
    actor text not null,
    occurrences bigint not null,
    kept bigint not null,
    primary key (span, start, tenant_id, type, product, actor)
  ) with (fillfactor = 80);
  create table svc.telemetry_count (name text primary key, value bigint not null) with (fillfactor = 20);
  create table svc.telemetry_dropped (
    minute bigint not null,
    service text not null,
    tenant_id text not null,
    kind text not null,
    count bigint not null,
    primary key (minute, service, tenant_id, kind)
  );
  create table svc.telemetry_day (
    kind text not null,
    day bigint not null,
    rows bigint not null default 0,
    last_id bigint not null default 0,
    row_bytes bigint,
    primary key (kind, day)
  ) with (fillfactor = 20);
  create table svc.telemetry_position (last_id bigint not null) with (fillfactor = 10);
  insert into svc.telemetry_position (last_id) values (0);
  create table svc.telemetry_writer (
    id uuid primary key,
    batch bigint not null,
    written_at bigint not null
  ) with (fillfactor = 20);`;

/**
 * Creates missing partitions, in an empty store from the day of `first_ms` on. Each is attached after its creation, because `partition of` would block readers of the
 * other partitions.
 */
const CREATE_DAYS = `
  create function svc.create_telemetry_days(
    now_ms bigint, kinds text[] default '{log,event}', first_ms bigint default null
  ) returns void language plpgsql as $$
  declare
    today bigint := now_ms - now_ms % ${DAY_MS};
    parent text;
    next_day bigint;
    part text;
  begin
    foreach parent in array kinds loop
      select case when max(day) is null then least(today - ${days(DAYS_BEHIND)}, first_ms - first_ms % ${DAY_MS})
          else greatest(max(day) + ${DAY_MS}, today - ${days(DAYS_BEHIND)}) end into next_day
        from svc.telemetry_day where kind = parent;
      while next_day <= today + ${days(DAYS_AHEAD)} loop
        part := parent || to_char(to_timestamp(next_day / 1000) at time zone 'UTC', '_YYYYMMDD');
        execute format('create table svc.%I (like svc.%I including all)', part, parent);
        execute format('alter table svc.%I attach partition svc.%I for values from (%s) to (%s)',
          parent, part, next_day, next_day + ${DAY_MS});
        insert into svc.telemetry_day (kind, day) values (parent, next_day);
        next_day := next_day + ${DAY_MS};
      end loop;
    end loop;
  end $$;`;

/**
 * Clamps the time of a record to the days with partitions, so that a wrong clock cannot cause an unlimited number of
 * partitions.
 */
const CLAMP = `
  create function svc.telemetry_bounds(parent text, now_ms bigint, out lower_ms bigint, out upper_ms bigint)
  language sql as $$
    select greatest(now_ms - now_ms % ${DAY_MS} - ${days(DAYS_BEHIND)}, min(day)), max(day) + ${DAY_MS - 1}
    from svc.telemetry_day where kind = parent
  $$;`;

/**
 * Stores a batch. One batch is stored at a time, so that ids become visible in their order and readers that continue
 * after an id miss no record. The function returns false for a batch that is already stored.
 */
const APPEND = `
  create function svc.append_telemetry(
    writer uuid, batch_number bigint, logs json, events json, counts json, dropped json, given_now bigint
  ) returns boolean language plpgsql as $$
  declare
    now_ms bigint;
    first_id bigint;
    added bigint;
    bounds record;
  begin
    perform set_config('synchronous_commit', 'off', true);
    select last_id into first_id from svc.telemetry_position for update;
    now_ms := coalesce(given_now, ${DATABASE_TIME});
    insert into svc.telemetry_writer as w (id, batch, written_at) values (writer, batch_number, now_ms)
      on conflict (id) do update set batch = excluded.batch, written_at = excluded.written_at
      where w.batch <> excluded.batch;
    if not found then
      return false;
    end if;
    perform svc.create_telemetry_days(now_ms);
    first_id := greatest(first_id, now_ms * ${IDS_PER_MS});

    select * into bounds from svc.telemetry_bounds('log', now_ms);
    with added_rows as (
      insert into svc.log (id, time, level, service, tenant_id, request_id, trace_id, span_id, plugin_id, run_id,
        source, layer, message, meta, extra, words)
      select first_id + row_number() over (), least(greatest(r.time, bounds.lower_ms), bounds.upper_ms), r.level,
        r.service, r.tenant_id, r.request_id, r.trace_id, r.span_id, r.plugin_id, r.run_id, r.source, r.layer,
        r.message, r.meta, r.extra, r.words
      from json_to_recordset(logs) as r (time bigint, level smallint, service text, tenant_id text, request_id text,
        trace_id text, span_id text, plugin_id text, run_id text, source text, layer text, message text, meta text,
        extra text, words tsvector)
      returning id, time
    ), per_day as (
      update svc.telemetry_day d set rows = d.rows + n.rows, last_id = n.last_id
      from (select time - time % ${DAY_MS} as day, count(*) as rows, max(id) as last_id from added_rows group by 1) n
      where d.kind = 'log' and d.day = n.day returning n.rows
    )
    select coalesce(sum(rows), 0) into added from per_day;
    first_id := first_id + added;

    select * into bounds from svc.telemetry_bounds('event', now_ms);
    with given as materialized (
      select row_number() over () as n, r.*, least(greatest(r.ts, bounds.lower_ms), bounds.upper_ms) as at
      from json_to_recordset(events) as r (event_id text, type text, ts bigint, ingest_ts bigint, product text,
        version text, run_id text, tenant_id text, actor text, ctx text, payload text, occurrences bigint,
        actor_key text, keep boolean)
    ), added_rows as (
      insert into svc.event (id, event_id, type, ts, ingest_ts, product, version, run_id, tenant_id, actor,
        actor_key, ctx, payload, occurrences)
      select first_id + n, event_id, type, at, ingest_ts, product, version, run_id, tenant_id, actor, actor_key, ctx,
        payload, occurrences
      from given where keep
      returning id, ts
    ), counted as (
      insert into svc.event_count as c (span, start, tenant_id, type, product, actor, occurrences, kept)
      select span, at - at % span, coalesce(tenant_id, ''), type, product, actor_key, sum(occurrences),
        count(*) filter (where keep)
      from given, unnest(array[${SPANS.join(', ')}]::bigint[]) as span
      group by 1, 2, 3, 4, 5, 6
      on conflict (span, start, tenant_id, type, product, actor) do update
        set occurrences = c.occurrences + excluded.occurrences, kept = c.kept + excluded.kept
    ), per_day as (
      update svc.telemetry_day d set rows = d.rows + n.rows, last_id = n.last_id
      from (select ts - ts % ${DAY_MS} as day, count(*) as rows, max(id) as last_id from added_rows group by 1) n
      where d.kind = 'event' and d.day = n.day
    )
    select count(*) into added from given;

    insert into svc.telemetry_count as c (name, value)
      select key, value::bigint from json_each_text(counts)
      on conflict (name) do update set value = c.value + excluded.value;
    insert into svc.telemetry_dropped as d (minute, service, tenant_id, kind, count)
      select minute, service, tenant_id, kind, sum(count)
      from json_to_recordset(dropped) as r (minute bigint, service text, tenant_id text, kind text, count bigint)
      group by 1, 2, 3, 4
      on conflict (minute, service, tenant_id, kind) do update set count = d.count + excluded.count;
    update svc.telemetry_position set last_id = first_id + added;
    return true;
  end $$;`;

/** Tables and functions of telemetry. Times are in epoch ms. */
export const TELEMETRY = `${RECORDS} ${SUMS} ${CREATE_DAYS} ${CLAMP} ${APPEND}`;

/** Counts by node, so that each node reports only its own as metrics. */
export const NODE_COUNTS = `
  create table svc.telemetry_node_count (
    node text not null,
    name text not null,
    value bigint not null,
    counted_at bigint not null,
    primary key (node, name)
  ) with (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
  create function svc.append_node_telemetry(
    node_id text, writer uuid, batch_number bigint, logs json, events json, counts json, dropped json, given_now bigint
  ) returns void language plpgsql as $$
  begin
    if not svc.append_telemetry(writer, batch_number, logs, events, counts, dropped, given_now) then
      return;
    end if;
    insert into svc.telemetry_node_count as c (node, name, value, counted_at)
      select node_id, key, value::bigint, coalesce(given_now, ${DATABASE_TIME}) from json_each_text(counts)
      on conflict (node, name) do update set value = c.value + excluded.value, counted_at = excluded.counted_at;
  end $$;`;

/** Kinds of records, which are also the names of their tables. */
export type Kind = 'log' | 'event';

/** Returns the name of the partition for a day. */
export function partitionOf(kind: Kind, day: number): string {
  return `svc.${kind}_${new Date(day).toISOString().slice(0, 10).replaceAll('-', '')}`;
}
