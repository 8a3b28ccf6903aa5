import { UNENDED_FENCES } from '../../members.ts';

/**
 * SQL condition for unfinished deliveries. SQLite uses the index `delivery_open` only if the query contains exactly the
 * condition of the index.
 */
export const IS_OPEN = `status in ('accepted', 'retrying', 'running')`;

/** SQL condition for rows without a live owner. Rows of earlier versions have no owner. */
const HAS_NO_OWNER = `(owner is null or owner not in (${UNENDED_FENCES}))`;

/** Columns of a delivery except its position and body. */
const COLUMNS = `webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id, mode, origin,
     status, http_status, duration_ms, attempts, next_attempt_at, steps, outcome, marker, order_key, replay_of, replayed_by,
     body_bytes, headers`;

/**
 * Statements by name. A released statement must never change, because write-ahead logs of earlier versions refer to it by name.
 */
const STATEMENTS = {
  /**
   * Claims a dedupe marker if only one process writes. The in-memory index has already shown that the marker is free.
   * SQLite replaces a null id with the next free id.
   */
  claim: `insert into delivery_marker (id, digest, state, expires_at) values (?, ?, ?, ?)`,
  /** Claims a dedupe marker unless another process has claimed it since the last read. */
  claimAmongOthers: `insert into delivery_marker (digest, state, expires_at)
   select ?, ?, ? where not exists
     (select 1 from delivery_marker where id > ? and digest = ? and expires_at > ?)`,
  /**
   * Does nothing if the webhook id exists. The id exists if a commit succeeded but was reported as failed, and the
   * delivery is written again.
   */
  insert: `insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id,
     mode, origin, status, http_status, duration_ms, attempts, steps, outcome, marker, order_key, replay_of, body_bytes, headers,
     body)
   values (unhex(?, '-'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, unhex(?, '-'), ?, ?, ?)
   on conflict (webhook_id) do nothing`,
  /** Same as `insert`, but also stores the fence token of the member process that runs the handler. */
  insertOwned: `insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id,
     trace_id, mode, origin, status, http_status, duration_ms, attempts, steps, outcome, marker, order_key, replay_of, body_bytes,
     headers, body, owner)
   values (unhex(?, '-'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, unhex(?, '-'), ?, ?, ?, ?)
   on conflict (webhook_id) do nothing`,
  insertBody: `insert into delivery_body (position, body)
   values ((select position from delivery where webhook_id = unhex(?, '-')), ?) on conflict (position) do nothing`,
  end: `update delivery set status = ?, http_status = ?, steps = trim(steps || ';' || ?, ';'), outcome = ?, duration_ms = ?,
     next_attempt_at = ?, attempts = attempts + 1
   where webhook_id = unhex(?, '-')`,
  /** Former version of the statement `end`. Journals of earlier versions still contain the name `finish`. */
  finish: `update delivery set status = ?, http_status = ?, steps = ?, outcome = ?, duration_ms = ?, next_attempt_at = ?,
     attempts = attempts + 1
   where webhook_id = unhex(?, '-')`,
  keepMarker: `update delivery_marker set state = 'done', expires_at = ? where id = ?`,
  releaseMarker: `delete from delivery_marker where id = ?`,
  replayed: `update delivery set replayed_by = unhex(?, '-') where webhook_id = unhex(?, '-')`,
  releasePending: `delete from delivery_marker where state = 'pending'`,
  /** Deletes `pending` markers in a range of ids. The range keeps a transaction from scanning the whole table. */
  releasePendingBetween: `delete from delivery_marker where id > ? and id <= ? and state = 'pending'`,
  interrupt: `update delivery set status = 'interrupted' where ${IS_OPEN} and status = 'running'`,
  /**
   * Deletes `pending` markers of ended processes, unless a running delivery of a live process has claimed the same
   * marker.
   */
  releasePendingOfEnded: `delete from delivery_marker where state = 'pending'
      and digest in (select marker from delivery where ${IS_OPEN} and status = 'running' and marker is not null and ${HAS_NO_OWNER})
      and digest not in (select marker from delivery where ${IS_OPEN} and status = 'running' and marker is not null
        and not (${HAS_NO_OWNER}))`,
  interruptEnded: `update delivery set status = 'interrupted' where ${IS_OPEN} and status = 'running' and ${HAS_NO_OWNER}`,
  handOver: `update delivery set mode = 'async', http_status = 202, steps = trim(steps || ';' || ?, ';')
   where webhook_id = unhex(?, '-') and status = 'running'`,
  resume: `update delivery set status = 'accepted', owner = null where ${IS_OPEN} and status = 'running' and mode = 'async'`,
  resumeEnded: `update delivery set status = 'accepted', owner = null
   where ${IS_OPEN} and status = 'running' and mode = 'async' and ${HAS_NO_OWNER}`,
  prune: `delete from delivery where status not in ('accepted', 'retrying')
     and position in (select value from json_each(?))`,
  /**
   * Deletes expired markers. A `pending` marker stays for another hour, because the end of its delivery might still be
   * in the journal.
   */
  pruneMarkers: `delete from delivery_marker where expires_at + iif(state = 'pending', 3600000, 0) <= ?
     and id in (select id from delivery_marker order by id limit ?)`,
  pruneOldMarkers: `delete from delivery_marker_old where digest in (
     select digest from delivery_marker_old where expires_at <= ? order by expires_at limit ?)`,
  /**
   * Copies old markers to a separate table, before `dropFolded` deletes the originals. Inserts rows in key order, so
   * that adjacent rows are on the same page.
   */
  foldMarkers: `insert into delivery_marker_old (digest, expires_at)
     select digest, expires_at from delivery_marker
     where id in (select id from delivery_marker order by id limit ?) and state = 'done' order by digest
   on conflict (digest) do update set expires_at = max(expires_at, excluded.expires_at)`,
  dropFolded: `delete from delivery_marker where id in (select id from delivery_marker order by id limit ?)
     and (state = 'done' or expires_at + 3600000 <= ?)`,
  /**
   * Deletes bodies by replacing the whole row. SQLite would not free the page if the row only became smaller in place.
   */
  dropSmallBodies: `replace into delivery (position, ${COLUMNS}, body)
   select position, ${COLUMNS}, null from delivery where position in (select value from json_each(?)) and body is not null`,
  noteBodiless: `update delivery_progress set bodiless_until = ?`,
  listByTime: `insert or ignore into delivery_by_time
     select namespace_id, received_at, position from delivery where position >= ? and position < ?`,
  listByStatus: `insert or ignore into delivery_by_status
     select namespace_id, plugin_id, event, status, received_at, position from delivery where position >= ? and position < ?`,
  listUnhandled: `insert or ignore into delivery_unhandled
     select position from delivery where position >= ? and position < ? and status in ('refused', 'challenge', 'duplicate')`,
  noteListed: `update delivery_progress set listed_from = ?`,
  dropLargeBodies: `delete from delivery_body where position in (select value from json_each(?))`,
  pruneUnhandled: `delete from delivery where position in (
     select position from delivery_unhandled order by position limit ?)`,
  pruneHours: `delete from delivery_hour where hour < ?`,
};

type Name = keyof typeof STATEMENTS;

/** Statements that the committer thread prepares, by name. */
export const DELIVERY_STATEMENTS: Readonly<Record<string, string>> = STATEMENTS;

/** Statement names, each mapped to itself, so that the compiler rejects unknown names. */
export const SQL = Object.fromEntries(Object.keys(STATEMENTS).map((name) => [name, name])) as {
  readonly [N in Name]: N;
};
