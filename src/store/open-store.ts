import type { Logger } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { GatewayStore, KeyValueStore, RateCounters, StateStore, WorkflowStore } from './ports/index.ts';
import type { PostgresDatabase } from './postgres/database.ts';
import type * as Drivers from './postgres/index.ts';
import { sqliteGatewayStore, sqliteStateStore, sqliteWorkflowStore } from './sqlite/index.ts';

export interface StoreOptions {
  /** URL of PostgreSQL, or null for SQLite files in `dataDir`. */
  postgresUrl: string | null;
  dataDir: string;
  clock: Clock;
  logger: Logger;
  /** Tells which processes use the SQLite file. PostgreSQL is always shared. */
  sqlite?: Pick<Parameters<typeof sqliteGatewayStore>[0], 'members' | 'recovers' | 'shared'>;
}

/** Opens the gateway's stores. Throws STORE_ERROR, also if the schema of PostgreSQL has to be migrated first. */
export function openGatewayStore({ postgresUrl, sqlite, ...options }: StoreOptions): Promise<GatewayStore> {
  if (postgresUrl === null) return sqliteGatewayStore({ ...options, ...sqlite });
  return openPostgres(postgresUrl, 'gateway', options.logger, ({ postgresGatewayStore }, database) =>
    postgresGatewayStore(database, options),
  );
}

/** Opens the state service's stores. Throws STORE_ERROR as `openGatewayStore` does. */
export function openStateStore({ postgresUrl, sqlite: _, ...options }: StoreOptions): Promise<StateStore> {
  if (postgresUrl === null) return sqliteStateStore(options);
  return openPostgres(postgresUrl, 'state', options.logger, ({ postgresStateStore }, database) =>
    postgresStateStore(database, options.clock),
  );
}

/** Opens the workflow service's stores. Throws STORE_ERROR as `openGatewayStore` does. */
export function openWorkflowStore({
  postgresUrl,
  sqlite: _,
  ...options
}: StoreOptions): Promise<WorkflowStore> {
  if (postgresUrl === null) return sqliteWorkflowStore(options);
  return openPostgres(postgresUrl, 'workflow', options.logger, ({ postgresWorkflowStore }, database) =>
    postgresWorkflowStore(database),
  );
}

/** Opens the rate counters that members share. Returns null if neither Redis nor PostgreSQL is configured. */
export async function openRateCounters({
  redisUrl,
  postgresUrl,
  clock,
  logger,
}: Pick<StoreOptions, 'clock' | 'logger' | 'postgresUrl'> & {
  redisUrl: string | null;
}): Promise<RateCounters | null> {
  if (redisUrl !== null) {
    const { RedisConnection, RedisRateCounters } = await import('./redis/index.ts');
    return new RedisRateCounters(await RedisConnection.open(redisUrl, logger));
  }
  if (postgresUrl === null) return null;
  return openPostgres(
    postgresUrl,
    'limits',
    logger,
    ({ PostgresRateCounters }, database) => new PostgresRateCounters(database, clock),
  );
}

export interface OpenedCache {
  entries: KeyValueStore;
  close(): Promise<void>;
}

/** Opens the cache of plugins in Redis or Valkey. Opening succeeds even if the server is away. */
export async function openRedisCache(
  url: string,
  { clock, logger }: Pick<StoreOptions, 'clock' | 'logger'>,
): Promise<OpenedCache> {
  const { RedisConnection, RedisKeyValue } = await import('./redis/index.ts');
  const redis = await RedisConnection.open(url, logger);
  return { entries: new RedisKeyValue(redis, clock), close: () => redis.close() };
}

/** The drivers are loaded only here, because platforms on SQLite need none of their libraries. */
async function openPostgres<Store>(
  url: string,
  service: string,
  logger: Logger,
  open: (drivers: typeof Drivers, database: PostgresDatabase) => Store,
): Promise<Store> {
  const drivers = await import('./postgres/index.ts');
  const database = new drivers.PostgresDatabase({ url, logger, applicationName: `svc-${service}` });
  try {
    drivers.requireUsableSchema(await drivers.readSchemaState(database), database.server);
    return open(drivers, database);
  } catch (error) {
    await database.close();
    throw error;
  }
}
