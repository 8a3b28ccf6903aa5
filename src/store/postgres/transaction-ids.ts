/** Id of the current transaction. `position_origin` keeps it rising when a dump is restored into another server. */
export const TRANSACTION_ID =
  '(pg_current_xact_id()::text::bigint + (select added from svc.position_origin))';

/** Id of the oldest running transaction. Rows of transactions before it are complete: none of them can still commit. */
export const OLDEST_RUNNING =
  '(pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (select added from svc.position_origin))';
