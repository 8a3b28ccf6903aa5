/**
 * Matches runs that have not ended. Partial indexes contain this text, and SQLite uses them only for literally equal
 * conditions.
 */
export const LIVE = `status in ('queued', 'running', 'waiting', 'interrupted', 'cancelling')`;

/**
 * Matches runs and clean-ups that wait for a plugin or an operator. A partial index contains this text, so queries must
 * use it unchanged.
 */
export const STUCK = `status in ('waiting', 'cancelling') and reason in ('plugin', 'decision')`;

/**
 * Matches unfinished runs that had work in flight during a crash. A partial index contains this text, so queries must
 * use it unchanged.
 */
export const BLAMED = `crashes + kills > 0 and ${LIVE}`;

/** Matches waiting runs and clean-ups without an owner. */
export const PARKED = `status in ('waiting', 'cancelling') and fence is null`;
