/**
 * SQL for the id of the current transaction. The value of `position_origin` keeps ids rising after a dump is restored
 * into another server.
 */
export const TRANSACTION_ID =
  '(pg_current_xact_id()::text::bigint + (select added from svc.position_origin))';

/**
 * SQL for the id of the oldest running transaction. Rows of earlier transactions are complete, because none of those
 * transactions can still commit.
 */
export const OLDEST_RUNNING =
  '(pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (select added from svc.position_origin))';
