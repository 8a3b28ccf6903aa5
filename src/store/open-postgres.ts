import type { Logger } from '../kit/telemetry/logger.ts';
import type { PostgresDatabase, PostgresOptions } from './postgres/database.ts';
import type * as Drivers from './postgres/index.ts';

/** Loads the PostgreSQL drivers only when needed, because platforms on SQLite do not use the drivers. */
export async function openPostgres<Store>(
  url: string,
  service: string,
  logger: Logger,
  open: (drivers: typeof Drivers, database: PostgresDatabase) => Store,
  options: Pick<PostgresOptions, 'maxConnections'> = {},
): Promise<Store> {
  const drivers = await import('./postgres/index.ts');
  const database = new drivers.PostgresDatabase({
    url,
    logger,
    applicationName: `svc-${service}`,
    ...options,
  });
  try {
    drivers.requireUsableSchema(await drivers.readSchemaState(database), database.server);
    await drivers.requireOriginal(database);
    return open(drivers, database);
  } catch (error) {
    await database.close();
    throw error;
  }
}
