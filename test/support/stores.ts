import { describe } from 'vitest';
import { migratedPostgres } from './migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from './postgres.ts';

/** Returns the config of a service on an empty store. */
export type StoreConfig = () => Promise<{ store?: { url: string } }>;

/** Declares tests for each store. On a machine without PostgreSQL, those for PostgreSQL are skipped with a message. */
export function describeOnStores(
  title: string,
  tests: (config: StoreConfig) => void,
  options: { timeout?: number } = {},
): void {
  describe(`${title} on SQLite`, options, () => tests(async () => ({})));
  describe.skipIf(!POSTGRES_PROGRAMS)(
    POSTGRES_PROGRAMS ? `${title} on PostgreSQL` : POSTGRES_MISSING,
    options,
    () => tests(async () => ({ store: { url: await migratedPostgres() } })),
  );
}
