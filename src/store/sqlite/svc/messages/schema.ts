/**
 * Messages to endpoints. Ids of messages begin with their time, so new rows are added at the end of each index. Most
 * deliveries succeed and leave the partial indexes. @spec docs/decisions/0250
 */
export const MESSAGES = `
  create table outgoing_endpoint (
    id text primary key,
    namespace_id text not null,
    application text,
    url text not null,
    types text not null,
    description text,
    rate_limit_per_second real,
    headers text,
    secret text not null,
    previous_secret text,
    previous_secret_expires_at integer,
    ordered integer not null,
    retry_schedule text,
    timeout_ms integer,
    disabled_reason text,
    disabled_at integer,
    failing_since integer,
    created_at integer not null,
    updated_at integer not null
  ) strict, without rowid;
  create index outgoing_endpoint_namespace on outgoing_endpoint (namespace_id, id);
  create index outgoing_endpoint_disabled on outgoing_endpoint (disabled_at) where disabled_at is not null;

  create table message (
    id text primary key,
    namespace_id text not null,
    application text,
    type text not null,
    timestamp integer not null,
    created_at integer not null,
    trace_id text not null,
    body_bytes integer not null,
    body blob not null
  ) strict, without rowid;
  create index message_namespace on message (namespace_id, id);

  create table message_delivery (
    message_id text not null,
    endpoint_id text not null,
    namespace_id text not null,
    status text not null,
    attempts integer not null default 0,
    tries integer not null default 0,
    is_replay integer not null default 0,
    next_attempt_at integer,
    last_status integer,
    last_error text,
    ended_at integer,
    primary key (message_id, endpoint_id)
  ) strict, without rowid;
  create index message_delivery_endpoint on message_delivery (endpoint_id, message_id);
  create index message_delivery_open on message_delivery (endpoint_id, status, message_id) where status <> 'succeeded';
  create index message_delivery_status on message_delivery (namespace_id, status, message_id) where status <> 'succeeded';
  create index message_delivery_retry on message_delivery (endpoint_id, next_attempt_at) where status = 'retrying';
  create index message_delivery_dead on message_delivery (ended_at) where status = 'dead';

  create table message_attempt (
    message_id text not null,
    endpoint_id text not null,
    number integer not null,
    "trigger" text not null,
    started_at integer not null,
    duration_ms real not null,
    succeeded integer not null,
    response_status integer,
    excerpt text,
    error text,
    next_attempt_at integer,
    primary key (message_id, endpoint_id, number)
  ) strict, without rowid;
  create index message_attempt_endpoint on message_attempt (endpoint_id, started_at, message_id, number);
  create index message_attempt_failed on message_attempt (endpoint_id, started_at, message_id, number) where succeeded = 0;

  create table message_key (
    digest blob primary key,
    message_id text not null,
    content blob not null,
    expires_at integer not null
  ) strict, without rowid;
  create index message_key_expiry on message_key (expires_at);`;

/** Find the messages of a trace and the alerts of an object. */
export const LINK_INDEXES = `
  create index message_trace on message (namespace_id, trace_id);
  create index alert_of_object on alert (object_key, id);`;

/** Whether a user of a portal set the URL. */
export const PORTAL_URLS = 'alter table outgoing_endpoint add column public_only integer not null default 0;';

/** Drops indexes of queries that only tests used. */
export const UNUSED_INDEXES = `
  drop index outgoing_endpoint_disabled;
  drop index message_delivery_dead;`;
