import { DRAINING_MEMBERS, MEMBERS } from '../members.ts';
import type { Migrations } from '../migrate.ts';
import { KEY_VALUE } from '../state/schema.ts';
import { ACCESS } from './access.ts';
import { ALERTS, MESSAGE_FACTS, RECOVERY_FACTS } from './alerts/schema.ts';
import { AUDIT } from './audit.ts';
import { CONNECTIONS } from './connections.ts';
import { DELIVERY_HOURS } from './deliveries/hour-schema.ts';
import { DELIVERY_LISTS } from './deliveries/list-schema.ts';
import { FEED } from './feed.ts';
import { LIST_INDEXES } from './list-indexes.ts';
import { LINK_INDEXES, MESSAGES, PORTAL_URLS, UNUSED_INDEXES } from './messages/schema.ts';
import { QUEUES } from './queues/schema.ts';
import { REFUSED_REQUESTS } from './refused-requests.ts';
import { VAULT } from './vault.ts';

/**
 * Body size above which a body is stored in a separate table. The value must not change, because released migrations
 * use it.
 */
export const INLINE_BODY_BYTES = 4096;

const WEBHOOK_SECRET = `
  create table webhook_secret (
    namespace_id text not null,
    plugin_id text not null,
    event text not null,
    instance_id text not null,
    current text not null,
    previous text,
    previous_expires_at integer,
    rotated_at integer not null,
    namespace_in_url integer not null,
    primary key (namespace_id, plugin_id, event, instance_id)
  ) strict, without rowid;`;

/** Columns for the request of a delivery. The text must never change, because two released migrations share it. */
const REQUEST_COLUMNS = `namespace_id text not null,
    plugin_id text not null,
    event text not null,
    instance_id text not null,
    received_at integer not null,
    source text not null,
    request_id text not null,
    trace_id text not null,
    mode text not null`;

/** First version of the tables for deliveries and their markers. The migration WEBHOOK_JOURNAL replaces both tables. */
const WEBHOOK_INBOX = `
  create table delivery (
    id integer primary key,
    webhook_id text not null unique,
    ${REQUEST_COLUMNS},
    status text not null,
    http_status integer,
    duration_ms real,
    attempts integer not null,
    steps text not null,
    outcome text,
    headers text not null,
    body blob
  ) strict;
  create index delivery_namespace on delivery (namespace_id, webhook_id);
  create index delivery_waiting on delivery (webhook_id) where status = 'accepted';

  create table delivery_marker (
    digest blob primary key,
    webhook_id text not null,
    state text not null,
    expires_at integer not null
  ) strict, without rowid;
  create index delivery_marker_expiry on delivery_marker (expires_at);`;

const CLIENTS = `
  create table client (
    client_id text primary key,
    host_id text not null,
    namespace_id text not null,
    name text not null,
    secret_hash text not null,
    created_at integer not null,
    revoked_at integer
  ) strict, without rowid;

  create table refresh_token (
    token_hash text primary key,
    family_id text not null,
    client_id text not null,
    created_at integer not null,
    expires_at integer not null,
    spent_at integer
  ) strict, without rowid;
  create index refresh_token_family on refresh_token (family_id);
  create index refresh_token_client on refresh_token (client_id);
  create index refresh_token_expiry on refresh_token (expires_at);`;

/** Readers use sequence numbers as cursors. `autoincrement` ensures that no number is reused. */
const HOSTS = `
  create table host (
    host_id text primary key,
    client_id text not null,
    namespace_id text not null,
    name text not null,
    public_key text not null,
    capabilities text not null,
    labels text not null,
    metadata text not null,
    created_at integer not null,
    revoked_at integer,
    session_id text,
    connected_at integer,
    last_seen_at integer
  ) strict, without rowid;
  create index client_host on client (host_id);

  create table minted_token (
    jti text primary key,
    host_id text not null,
    namespace_id text not null,
    created_by text not null,
    created_at integer not null,
    expires_at integer not null,
    revoked_at integer
  ) strict, without rowid;
  create index minted_token_expiry on minted_token (expires_at);

  create table revocation (
    sequence integer primary key autoincrement,
    kind text not null,
    subject text not null,
    expires_at integer,
    unique (kind, subject)
  ) strict;
  create index revocation_expiry on revocation (expires_at) where expires_at is not null;`;

/**
 * Makes the tables of deliveries and markers append-only. Before, sorting the markers by their random digests took half
 * of the time per delivery.
 */
const WEBHOOK_JOURNAL = `
  alter table delivery rename to former_delivery;
  alter table delivery_marker rename to former_marker;
  drop index delivery_namespace;
  create table delivery (
    position integer primary key autoincrement,
    webhook_id blob not null unique,
    ${REQUEST_COLUMNS},
    origin text not null,
    status text not null,
    http_status integer,
    duration_ms real,
    attempts integer not null,
    next_attempt_at integer,
    steps text not null,
    outcome text,
    marker blob,
    order_key text,
    replay_of blob,
    replayed_by blob,
    body_bytes integer not null
  ) strict;
  create index delivery_namespace on delivery (namespace_id);
  create index delivery_open on delivery (position) where status in ('accepted', 'retrying', 'running');

  create table delivery_body (
    position integer primary key references delivery (position) on delete cascade,
    headers text not null,
    body blob
  ) strict;

  create table delivery_marker (
    id integer primary key autoincrement,
    digest blob not null,
    state text not null,
    expires_at integer not null
  ) strict;

  create table delivery_marker_old (
    digest blob primary key,
    expires_at integer not null
  ) strict, without rowid;
  create index delivery_marker_old_expiry on delivery_marker_old (expires_at);

  insert into delivery (position, webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id,
    trace_id, mode, origin, status, http_status, duration_ms, attempts, steps, outcome, body_bytes)
  select id, unhex(webhook_id, '-'), namespace_id, plugin_id, event, instance_id, received_at, source, request_id,
    trace_id, mode, 'sender', status, http_status, duration_ms, attempts, '', outcome, coalesce(length(body), 0)
  from former_delivery order by id;
  insert into delivery_body (position, headers, body) select id, headers, body from former_delivery order by id;
  insert into delivery_marker (digest, state, expires_at)
  select substr(digest, 1, 16), state, expires_at from former_marker order by webhook_id;
  drop table former_delivery;
  drop table former_marker;`;

/**
 * Moves headers and small bodies into the delivery row, because inserting a second row was slow. Large bodies stay in a
 * separate table, so that updates of the delivery row stay cheap.
 */
const WEBHOOK_ROWS = `
  alter table delivery add column headers text not null default '[]';
  alter table delivery add column body blob;
  update delivery set (headers, body) = (
    select headers, iif(length(b.body) <= ${INLINE_BODY_BYTES}, b.body, null) from delivery_body b where b.position = delivery.position)
  where position in (select position from delivery_body);
  delete from delivery_body where body is null or length(body) <= ${INLINE_BODY_BYTES};
  alter table delivery_body drop column headers;`;

const SECRET_USE = 'alter table webhook_secret add column previous_used_at integer;';

/** Stores the sequence number of the last journal frame that was applied to this database. */
const WEBHOOK_JOURNAL_PLACE = `
  create table delivery_journal (applied integer not null) strict;
  insert into delivery_journal (applied) values (0);`;

/**
 * Id that links a journal to its database. The id is null until the journal of an earlier version without ids has been
 * applied.
 */
const WEBHOOK_JOURNAL_ID = 'alter table delivery_journal add column id blob;';

/**
 * Adds owner columns for running sync deliveries and for host sessions. An owner is the fence token of a member
 * process.
 */
const OWNERS = `${MEMBERS}
  alter table delivery add column owner integer;
  alter table host add column owner integer;`;

/** Migrations of `svc.db`. Times are in epoch ms. */
export const GATEWAY_MIGRATIONS: Migrations = [
  `${KEY_VALUE} ${WEBHOOK_SECRET} ${WEBHOOK_INBOX} ${CLIENTS}`,
  HOSTS,
  SECRET_USE,
  WEBHOOK_JOURNAL,
  WEBHOOK_ROWS,
  WEBHOOK_JOURNAL_PLACE,
  WEBHOOK_JOURNAL_ID,
  DELIVERY_LISTS,
  OWNERS,
  FEED,
  DRAINING_MEMBERS,
  `${ACCESS} ${AUDIT}`,
  DELIVERY_HOURS,
  REFUSED_REQUESTS,
  QUEUES,
  CONNECTIONS,
  ALERTS,
  MESSAGES,
  VAULT,
  MESSAGE_FACTS,
  LINK_INDEXES,
  RECOVERY_FACTS,
  LIST_INDEXES,
  PORTAL_URLS,
  UNUSED_INDEXES,
];
