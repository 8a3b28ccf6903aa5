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
