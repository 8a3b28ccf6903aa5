import { OLDEST_RUNNING, TRANSACTION_ID } from '../../transaction-ids.ts';

/** Number of positions per transaction. This is also the maximum number of deliveries in a batch. */
export const POSITIONS_PER_TRANSACTION = 4096;

/** SQL for the position of the first delivery of the current transaction. */
export const FIRST_POSITION = `${TRANSACTION_ID} * ${POSITIONS_PER_TRANSACTION}`;

/**
 * SQL for a position. All rows below this position are final, because no running transaction can still add such a row.
 */
export const POSITION_HORIZON = `${OLDEST_RUNNING} * ${POSITIONS_PER_TRANSACTION}`;

export const IS_OPEN = `status in ('accepted', 'retrying', 'running')`;
export const IS_UNHANDLED = `status in ('refused', 'challenge', 'duplicate')`;

/** Size of a record apart from its texts and body: columns, index entries and row headers. */
const RECORD_BYTES = 700;

/**
 * Tables of the inbox. A position starts with the transaction id, so that readers can stop before rows of transactions
 * that can still commit.
 */
export const WEBHOOK_INBOX = `
  create table svc.position_origin (added bigint not null);
  insert into svc.position_origin (added) values (0);

  create table svc.delivery (
    position bigint primary key,
    webhook_id uuid not null unique,
    namespace_id text collate "C" not null,
    plugin_id text collate "C" not null,
    event text collate "C" not null,
    instance_id text not null,
    received_at bigint not null,
    source text not null,
    request_id text not null,
    trace_id text not null,
    mode text not null,
    origin text not null,
    status text not null,
    http_status integer,
    duration_ms double precision,
    attempts integer not null default 0,
    next_attempt_at bigint,
    steps text not null,
    outcome text,
    marker bytea,
    order_key text,
    replay_of uuid,
    replayed_by uuid,
    body_bytes integer not null,
    headers text not null,
    owner bigint
  );
  create index delivery_by_time on svc.delivery (namespace_id, received_at, position);
  create index delivery_by_endpoint on svc.delivery (namespace_id, plugin_id, event, received_at, position);
  create index delivery_not_succeeded on svc.delivery (namespace_id, status, received_at, position)
    where status <> 'succeeded';
  create index delivery_open on svc.delivery (position) where ${IS_OPEN};
  create index delivery_unhandled on svc.delivery (position) where ${IS_UNHANDLED};
  create index delivery_age on svc.delivery using brin (received_at);

  create table svc.delivery_body (
    position bigint primary key,
    body bytea not null
  );
  alter table svc.delivery_body alter column body set storage external;

  create table svc.delivery_marker (
    digest bytea primary key,
    state text not null,
    expires_at bigint not null,
    webhook_id uuid
  );
  create index delivery_marker_expiry on svc.delivery_marker (expires_at);

  create table svc.delivery_usage (
    records bigint not null,
    unhandled bigint not null,
    bytes bigint not null
  );
  create function svc.record_bytes(headers text, steps text, outcome text) returns bigint language sql immutable as $$
    select ${RECORD_BYTES} + octet_length(headers) + octet_length(steps) + coalesce(octet_length(outcome), 0)
  $$;`;
