/**
 * SQL condition for unfinished runs. SQLite uses a partial index only if the query contains exactly the condition of
 * the index.
 */
export const LIVE = `status in ('queued', 'running', 'waiting', 'interrupted', 'cancelling')`;

/**
 * SQL condition for runs and clean-ups that wait for a plugin or an operator. A partial index has this condition, so
 * queries must repeat it exactly.
 */
export const STUCK = `status in ('waiting', 'cancelling') and reason in ('plugin', 'decision')`;

/**
 * SQL condition for unfinished runs that were executing when their process crashed or was killed. A partial index has
 * this condition, so queries must repeat it exactly.
 */
export const BLAMED = `crashes + kills > 0 and ${LIVE}`;

/** SQL condition for waiting runs and clean-ups without an owner. */
export const PARKED = `status in ('waiting', 'cancelling') and fence is null`;
