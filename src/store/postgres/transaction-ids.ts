/**
 * SQL for the id of the current transaction. Ids would start again after a restore into another server, so the value of
 * `position_origin` is added.
 */
export const TRANSACTION_ID =
  '(pg_current_xact_id()::text::bigint + (select added from svc.position_origin))';

/**
 * SQL for the id of the oldest running transaction. All earlier transactions have ended, so their rows are complete.
 */
export const OLDEST_RUNNING =
  '(pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (select added from svc.position_origin))';

/** SQL for the value that `TRANSACTION_ID` adds to the ids of the server. */
export const ADDED_TO_IDS = '(select added from svc.position_origin)';

/**
 * Returns an SQL condition that is true if the transaction with this id had ended when the snapshot was taken. Unlike a
 * comparison with `OLDEST_RUNNING`, the condition does not depend on unrelated transactions, which can run for hours in
 * any database of the server.
 */
export function isIn(snapshot: string, id: string): string {
  // Ids from before a restore are not ids of this server.
  return `(case when ${id} <= ${ADDED_TO_IDS} then true
    else pg_visible_in_snapshot((${id} - ${ADDED_TO_IDS})::text::xid8, ${snapshot}) end)`;
}

/** Returns SQL for the id of the oldest transaction that was running when the snapshot was taken. */
export function oldestRunningIn(snapshot: string): string {
  return `(pg_snapshot_xmin(${snapshot})::text::bigint + ${ADDED_TO_IDS})`;
}
