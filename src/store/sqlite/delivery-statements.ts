/**
 * The condition of the index `delivery_open`, word for word: SQLite uses a partial index only where a query repeats its
 * condition, and scans the whole table for a narrower one.
 */
export const IS_OPEN = `status in ('accepted', 'retrying', 'running')`;

/** Of a delivery, beside its position and its body. */
const COLUMNS = `webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id, mode, origin,
     status, http_status, duration_ms, attempts, next_attempt_at, steps, outcome, marker, order_key, replay_of, replayed_by,
     body_bytes, headers`;

/**
 * A journal that a former version left is applied by this one: a name keeps its meaning and the order of its values for
 * good. What is to be written otherwise gets another name.
 */
const STATEMENTS = {
  /** Where nobody else writes, memory alone decides. Without an id it gets the next. */
  claim: `insert into delivery_marker (id, digest, state, expires_at) values (?, ?, ?, ?)`,
  /** Unless another process took it since we last looked. */
  claimAmongOthers: `insert into delivery_marker (digest, state, expires_at)
   select ?, ?, ? where not exists
     (select 1 from delivery_marker where id > ? and digest = ? and expires_at > ?)`,
  /** A second row of one webhook id is ignored, as a note may come twice after a lost commit. */
  insert: `insert into delivery (webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id,
     mode, origin, status, http_status, duration_ms, attempts, steps, outcome, marker, order_key, replay_of, body_bytes, headers,
     body)
   values (unhex(?, '-'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, unhex(?, '-'), ?, ?, ?)
   on conflict (webhook_id) do nothing`,
  insertBody: `insert into delivery_body (position, body)
   values ((select position from delivery where webhook_id = unhex(?, '-')), ?) on conflict (position) do nothing`,
  end: `update delivery set status = ?, http_status = ?, steps = trim(steps || ';' || ?, ';'), outcome = ?, duration_ms = ?,
     next_attempt_at = ?, attempts = attempts + 1
   where webhook_id = unhex(?, '-')`,
  /** As versions before `end` wrote it. */
  finish: `update delivery set status = ?, http_status = ?, steps = ?, outcome = ?, duration_ms = ?, next_attempt_at = ?,
     attempts = attempts + 1
   where webhook_id = unhex(?, '-')`,
  keepMarker: `update delivery_marker set state = 'done', expires_at = ? where id = ?`,
  releaseMarker: `delete from delivery_marker where id = ?`,
  replayed: `update delivery set replayed_by = unhex(?, '-') where webhook_id = unhex(?, '-')`,
  releasePending: `delete from delivery_marker where state = 'pending'`,
  /** A stretch of them, so that no transaction reads the whole table. */
  releasePendingBetween: `delete from delivery_marker where id > ? and id <= ? and state = 'pending'`,
  /** But not what a living delivery claimed since. */
  releasePendingOf: `delete from delivery_marker where state = 'pending'
     and digest in (select marker from delivery where ${IS_OPEN} and status = 'running' and marker is not null and received_at <= ?
       and webhook_id not in (select unhex(value, '-') from json_each(?)))
     and digest not in (select marker from delivery where marker is not null
       and webhook_id in (select unhex(value, '-') from json_each(?)))`,
  interrupt: `update delivery set status = 'interrupted' where ${IS_OPEN} and status = 'running' and received_at <= ?
     and webhook_id not in (select unhex(value, '-') from json_each(?))`,
  /** Unless one of them waits for its handler. */
  prune: `delete from delivery where status not in ('accepted', 'retrying')
     and position in (select value from json_each(?))`,
  /** A lapsed claim stays for an hour: its end may have been acknowledged in time and not be in here yet. */
  pruneMarkers: `delete from delivery_marker where expires_at + iif(state = 'pending', 3600000, 0) <= ?
     and id in (select id from delivery_marker order by id limit ?)`,
  pruneOldMarkers: `delete from delivery_marker_old where digest in (
     select digest from delivery_marker_old where expires_at <= ? order by expires_at limit ?)`,
  /** In the order of their tree, so that neighbours share a page. */
  foldMarkers: `insert into delivery_marker_old (digest, expires_at)
     select digest, expires_at from delivery_marker
     where id in (select id from delivery_marker order by id limit ?) and state = 'done' order by digest
   on conflict (digest) do update set expires_at = max(expires_at, excluded.expires_at)`,
  dropFolded: `delete from delivery_marker where id in (select id from delivery_marker order by id limit ?)
     and (state = 'done' or expires_at + 3600000 <= ?)`,
  /**
   * The bodies at these positions, wherever they lie. Rows are written anew: one that only becomes shorter leaves its page as
   * it is, and the file would take as much as before.
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
  /** The oldest records of requests that no handler saw. */
  pruneUnhandled: `delete from delivery where position in (
     select position from delivery_unhandled order by position limit ?)`,
};

type Name = keyof typeof STATEMENTS;

/** What the committing thread prepares, by name. */
export const DELIVERY_STATEMENTS: Readonly<Record<string, string>> = STATEMENTS;

/** The names, for steps. */
export const SQL = Object.fromEntries(Object.keys(STATEMENTS).map((name) => [name, name])) as {
  readonly [N in Name]: N;
};
