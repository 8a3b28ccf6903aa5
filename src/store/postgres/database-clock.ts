/**
 * SQL for the current time of the database in epoch ms. Unlike `now()`, `clock_timestamp()` advances within a
 * transaction.
 */
export const DATABASE_TIME = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** SQL for the current time: the parameter `now`, which only tests set, or else the time of the database. */
export const NOW = `coalesce(:now::bigint, ${DATABASE_TIME})`;

/**
 * SQL for the time of the database at the start of the statement, in epoch ms. Unlike `clock_timestamp()`, indexes can be
 * searched for it.
 */
export const STATEMENT_TIME = '(extract(epoch from statement_timestamp()) * 1000)::bigint';
