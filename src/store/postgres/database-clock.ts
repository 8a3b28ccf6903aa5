/** Time of the database in epoch ms. It also runs within a transaction. */
export const DATABASE_TIME = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** The parameter `now` if a test gives one, otherwise the time of the database. */
export const NOW = `coalesce(:now::bigint, ${DATABASE_TIME})`;
