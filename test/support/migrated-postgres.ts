import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { migratePostgres, PostgresDatabase } from '../../src/store/postgres/index.ts';
import { emptyPostgres } from './postgres.ts';

/** The URL of a database with the platform's tables, which is dropped when the test ends. */
export async function migratedPostgres(): Promise<string> {
  const url = await emptyPostgres();
  await migrateDatabase(url);
  return url;
}

/** Creates the platform's tables in an empty database. */
export async function migrateDatabase(url: string): Promise<void> {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-test' });
  await migratePostgres(database);
  await database.close();
}
