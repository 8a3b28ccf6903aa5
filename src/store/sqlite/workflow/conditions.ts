/**
 * Unfinished states. Partial indexes repeat this text literally, as SQLite uses them only for the same
 * condition.
 */
export const LIVE = `status in ('queued', 'running', 'waiting', 'interrupted', 'cancelling')`;

/** Runs and clean-ups that wait for a plugin or an operator. Literal for the same reason. */
export const STUCK = `status in ('waiting', 'cancelling') and reason in ('plugin', 'decision')`;

/** Unfinished runs with work in flight at an end of the service. Literal for the same reason. */
export const BLAMED = `crashes + kills > 0 and ${LIVE}`;

/** Waiting runs without an owner. */
export const PARKED = `status in ('waiting', 'cancelling') and fence is null`;
