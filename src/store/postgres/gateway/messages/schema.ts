import type { ConcurrentIndex } from '../../concurrent-index.ts';

/**
 * Messages to endpoints, as in `sqlite/svc/messages/schema.ts`. With `collate "C"`, ids are sorted by their bytes. Dead
 * versions of deliveries are removed early: look-ups would have to skip them. @spec docs/decisions/0250
 */
export const MESSAGES = `
  create table svc.outgoing_endpoint (
    id text collate "C" primary key,
    namespace_id text collate "C" not null,
    application text collate "C",
    url text not null,
    types text not null,
    description text,
    rate_limit_per_second double precision,
    headers text,
    secret text not null,
    previous_secret text,
    previous_secret_expires_at bigint,
    ordered smallint not null,
    retry_schedule text,
    timeout_ms integer,
    disabled_reason text,
    disabled_at bigint,
    failing_since bigint,
    created_at bigint not null,
    updated_at bigint not null
  );
  create index outgoing_endpoint_namespace on svc.outgoing_endpoint (namespace_id, id);
  create index outgoing_endpoint_disabled on svc.outgoing_endpoint (disabled_at) where disabled_at is not null;

  create table svc.message (
    id text collate "C" primary key,
    namespace_id text collate "C" not null,
    application text collate "C",
    type text collate "C" not null,
    timestamp bigint not null,
    created_at bigint not null,
    trace_id text not null,
    body_bytes bigint not null,
    body bytea not null
  );
  create index message_namespace on svc.message (namespace_id, id);

  create table svc.message_delivery (
    message_id text collate "C" not null,
    endpoint_id text collate "C" not null,
    namespace_id text collate "C" not null,
    status text collate "C" not null,
    attempts integer not null default 0,
    tries integer not null default 0,
    is_replay smallint not null default 0,
    next_attempt_at bigint,
    last_status integer,
    last_error text,
    ended_at bigint,
    primary key (message_id, endpoint_id)
  ) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);
  create index message_delivery_endpoint on svc.message_delivery (endpoint_id, message_id);
  create index message_delivery_open on svc.message_delivery (endpoint_id, status, message_id) where status <> 'succeeded';
  create index message_delivery_status on svc.message_delivery (namespace_id, status, message_id)
    where status <> 'succeeded';
  create index message_delivery_retry on svc.message_delivery (endpoint_id, next_attempt_at) where status = 'retrying';
  create index message_delivery_dead on svc.message_delivery (ended_at) where status = 'dead';

  create table svc.message_attempt (
    message_id text collate "C" not null,
    endpoint_id text collate "C" not null,
    number integer not null,
    "trigger" text not null,
    started_at bigint not null,
    duration_ms double precision not null,
    succeeded smallint not null,
    response_status integer,
    excerpt text,
    error text,
    next_attempt_at bigint,
    primary key (message_id, endpoint_id, number)
  );
  create index message_attempt_endpoint on svc.message_attempt (endpoint_id, started_at, message_id, number);
  create index message_attempt_failed on svc.message_attempt (endpoint_id, started_at, message_id, number)
    where succeeded = 0;

  create table svc.message_key (
    digest bytea primary key,
    message_id text collate "C" not null,
    content bytea not null,
    expires_at bigint not null
  );
  create index message_key_expiry on svc.message_key (expires_at);`;

export const MESSAGE_TRACE: ConcurrentIndex = {
  name: 'message_trace',
  table: 'message',
  columns: 'namespace_id, trace_id, id',
};

/** Whether a user of a portal set the URL. */
export const PORTAL_URLS =
  'alter table svc.outgoing_endpoint add column public_only smallint not null default 0;';

/** Indexes of queries that only tests used. */
export const UNUSED_INDEXES: readonly string[] = ['outgoing_endpoint_disabled', 'message_delivery_dead'];
