/**
 * SQL condition for unfinished runs. SQLite uses a partial index only if the query contains exactly the condition of
 * the index.
 */
export const LIVE = `status in ('queued', 'running', 'waiting', 'interrupted', 'cancelling')`;

/**
 * SQL condition for runs and clean-ups that wait for a plugin or an operator. Queries must repeat the exact text,
 * because SQLite otherwise ignores the partial index.
 */
export const STUCK = `status in ('waiting', 'cancelling') and reason in ('plugin', 'decision')`;

/**
 * SQL condition for unfinished runs that were executing when their process crashed or was killed. Queries must repeat
 * the exact text, because SQLite otherwise ignores the partial index.
 */
export const BLAMED = `crashes + kills > 0 and ${LIVE}`;

/** SQL condition for waiting runs and clean-ups without an owner. */
export const PARKED = `status in ('waiting', 'cancelling') and fence is null`;

/**
 * SQL condition for unfinished runs that wait for a place of their concurrency key. A paused run neither acquires a place
 * nor gives way to a newer run.
 */
export const WAITS_FOR_KEY = `status = 'queued' and ready = 0 and reason = 'concurrency' and pause_scope is null`;
