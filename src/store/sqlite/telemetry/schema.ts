import type { Migrations } from '../migrate.ts';
import { PERMISSION_USES } from './permission-uses.ts';
import { EVENT_TRACES } from './trace-schema.ts';

/** Table of log records. `log_text` indexes the words of the messages without a copy of the messages. */
const LOG = `
  create table log (
    id integer primary key,
    time integer not null,
    level integer not null,
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
    extra text
  ) strict;
  create index log_time on log (time);
  create index log_tenant on log (tenant_id, time) where tenant_id is not null;
  create index log_request on log (request_id) where request_id is not null;
  create index log_trace on log (trace_id) where trace_id is not null;
  create index log_plugin on log (plugin_id, time) where plugin_id is not null;
  create index log_run on log (run_id, time) where run_id is not null;
  create virtual table log_text using fts5 (
    message, content = '', contentless_delete = 1, detail = none, tokenize = 'unicode61'
  );`;

/** Tables of events, and of event counts per hour and per day. Statistics over a year read only the counts. */
const EVENT = `
  create table event (
    id integer primary key,
    event_id text not null,
    type text not null,
    ts integer not null,
    ingest_ts integer not null,
    product text not null,
    version text not null,
    run_id text not null,
    tenant_id text,
    actor text,
    ctx text,
    payload text,
    occurrences integer not null
  ) strict;
  create index event_ts on event (ts);
  create index event_type on event (type, ts);
  create index event_product on event (product, ts);
  create index event_tenant on event (tenant_id, ts);

  create table event_count (
    span integer not null,
    start integer not null,
    tenant_id text not null,
    type text not null,
    product text not null,
    actor text not null,
    occurrences integer not null,
    kept integer not null,
    primary key (span, start, tenant_id, type, product, actor)
  ) strict, without rowid;`;

const COUNTS = `
  create table telemetry_count (
    name text primary key,
    value integer not null
  ) strict, without rowid;`;

const DROPPED = `
  create table telemetry_dropped (
    minute integer not null,
    service text not null,
    tenant_id text not null,
    kind text not null,
    count integer not null,
    primary key (minute, service, tenant_id, kind)
  ) strict, without rowid;`;

/** Migrations of `telemetry.db`. Times are in epoch ms. */
export const TELEMETRY_MIGRATIONS: Migrations = [
  `${LOG} ${EVENT} ${COUNTS}`,
  DROPPED,
  EVENT_TRACES,
  PERMISSION_USES,
];
