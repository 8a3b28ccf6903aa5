/**
 * Unfinished states. Partial indexes repeat this text literally, as SQLite uses them only for the same
 * condition.
 */
export const LIVE = `status in ('queued', 'running', 'waiting', 'interrupted', 'cancelling')`;

/** Runs and clean-ups that wait for a plugin or an operator. Partial indexes repeat this text literally. */
export const STUCK = `status in ('waiting', 'cancelling') and reason in ('plugin', 'decision')`;

/** Unfinished runs that had work in flight when the service died. Partial indexes repeat this text literally. */
export const BLAMED = `crashes + kills > 0 and ${LIVE}`;

/** Waiting runs without an owner. */
export const PARKED = `status in ('waiting', 'cancelling') and fence is null`;
