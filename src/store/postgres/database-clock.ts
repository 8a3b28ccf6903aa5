/** SQL for the time of the database in epoch ms. Unlike `now()`, it advances within a transaction. */
export const DATABASE_TIME = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** SQL for the parameter `now`, which only tests set, or else for the time of the database. */
export const NOW = `coalesce(:now::bigint, ${DATABASE_TIME})`;
