import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import { openPostgres } from './open-postgres.ts';
import type {
  GatewayStore,
  KeyValueStore,
  MemberStore,
  RateCounters,
  SharedPluginStore,
  StateStore,
  WorkflowStore,
} from './ports/index.ts';
import type { TelemetryReader } from './ports/telemetry.ts';
import type { SpillOptions } from './postgres/gateway/inbox/spilling-inbox.ts';
import {
  SqliteRateCounters,
  type SqliteRateCountersOptions,
  sqliteGatewayStore,
  sqliteStateStore,
  sqliteWorkflowStore,
  threadedVectorIndex,
} from './sqlite/index.ts';
import { createTelemetryReader, openedOnUse } from './telemetry/reader.ts';

/** Folder in the data folder for deliveries that were accepted while PostgreSQL was unreachable. */
const SPILL_FOLDER = 'spill';
/** Streams of all clients share these connections. */
const READER_CONNECTIONS = 4;
/** One connection holds the lock during a change, which only the marketplace makes. */
const SHARED_PLUGIN_CONNECTIONS = 4;

export interface StoreOptions {
  /** URL of PostgreSQL, or null for SQLite files in `dataDir`. */
  postgresUrl: string | null;
  dataDir: string;
  clock: Clock;
  logger: Logger;
  /** Settings for sharing the SQLite file between processes. A PostgreSQL database is always shared. */
  sqlite?: Pick<Parameters<typeof sqliteGatewayStore>[0], 'members' | 'recovers' | 'shared'>;
}

/** Opens the gateway's stores. Throws STORE_ERROR, for example if the PostgreSQL schema must be migrated first. */
export async function openGatewayStore({
  postgresUrl,
  sqlite,
  spills = false,
  ...options
}: StoreOptions & { spills?: boolean }): Promise<GatewayStore> {
  if (postgresUrl === null) return sqliteGatewayStore({ ...options, ...sqlite });
  const spill = await openSpill({ ...options, spills, recovers: sqlite?.recovers ?? true });
  try {
    return await openPostgres(postgresUrl, 'gateway', options.logger, ({ postgresGatewayStore }, database) =>
      postgresGatewayStore(database, { ...options, spill }),
    );
  } catch (error) {
    await spill?.store.close();
    throw error;
  }
}

/**
 * Opens the local store for spilled deliveries. Returns undefined if spilling is not configured and no store folder of
 * an earlier process exists.
 */
async function openSpill({
  dataDir,
  clock,
  logger,
  spills,
  recovers,
}: Pick<StoreOptions, 'dataDir' | 'clock' | 'logger'> & {
  spills: boolean;
  recovers: boolean;
}): Promise<SpillOptions | undefined> {
  const folder = join(dataDir, SPILL_FOLDER);
  if (!spills && !existsSync(folder)) return undefined;
  const store = await sqliteGatewayStore({ dataDir: folder, clock, logger, members: 'several', recovers });
  return { store, accepts: spills, moves: recovers };
}

/** Opens the state service's stores. Throws STORE_ERROR in the same cases as `openGatewayStore`. */
export function openStateStore({ postgresUrl, sqlite: _, ...options }: StoreOptions): Promise<StateStore> {
  if (postgresUrl === null) return sqliteStateStore(options);
  return openPostgres(postgresUrl, 'state', options.logger, ({ postgresStateStore }, database) =>
    postgresStateStore(database, { clock: options.clock, vectorIndex: threadedVectorIndex(options) }),
  );
}

/** Opens the workflow service's stores. Throws STORE_ERROR in the same cases as `openGatewayStore`. */
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

/** Opens the list of plugins that all nodes share. Throws STORE_ERROR in the same cases as `openGatewayStore`. */
export function openSharedPlugins(
  postgresUrl: string,
  { clock, logger, service }: Pick<StoreOptions, 'clock' | 'logger'> & { service: string },
): Promise<SharedPluginStore> {
  return openPostgres(
    postgresUrl,
    `${service}-plugins`,
    logger,
    ({ postgresSharedPlugins }, database) => postgresSharedPlugins(database, clock),
    { maxConnections: SHARED_PLUGIN_CONNECTIONS },
  );
}

/**
 * Opens the rate counters that all processes share. Prefers Redis, then PostgreSQL, then a SQLite file. Returns null if
 * processes do not share rate counters.
 */
export async function openRateCounters({
  redisUrl,
  postgresUrl,
  sqlite,
  clock,
  logger,
}: Pick<StoreOptions, 'clock' | 'logger' | 'postgresUrl'> & {
  redisUrl: string | null;
  sqlite?: Pick<SqliteRateCountersOptions, 'dataDir' | 'isFirst'> | undefined;
}): Promise<RateCounters | null> {
  if (redisUrl !== null) {
    const { RedisConnection, RedisRateCounters } = await import('./redis/index.ts');
    return new RedisRateCounters(await RedisConnection.open(redisUrl, logger));
  }
  if (postgresUrl === null) return sqlite ? SqliteRateCounters.open({ ...sqlite, clock, logger }) : null;
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

/** Opens the plugin cache in Redis or Valkey. Succeeds even if the server cannot be reached. */
export async function openRedisCache(
  url: string,
  { clock, logger }: Pick<StoreOptions, 'clock' | 'logger'>,
): Promise<OpenedCache> {
  const { RedisConnection, RedisKeyValue } = await import('./redis/index.ts');
  const redis = await RedisConnection.open(url, logger);
  return { entries: new RedisKeyValue(redis, clock), close: () => redis.close() };
}

/**
 * Returns a reader of telemetry, even if the store cannot be opened. Queries then reject with STORE_ERROR, and each
 * later query tries to open the store again.
 */
export function openTelemetryReader({
  postgresUrl,
  dataDir,
  clock,
  logger,
  node,
}: Omit<StoreOptions, 'sqlite'> & { node?: string }): TelemetryReader {
  if (postgresUrl === null) return createTelemetryReader({ dataDir, clock });
  return openedOnUse(() =>
    openPostgres(
      postgresUrl,
      'telemetry-reader',
      logger,
      ({ postgresTelemetryStore }, database) => postgresTelemetryStore(database, { node }),
      { maxConnections: READER_CONNECTIONS },
    ),
  );
}

export interface OpenedMembers {
  members: MemberStore;
  close(): Promise<void>;
}

/** Connections for the members: one for the lease, and one for reading addresses. */
const MEMBER_CONNECTIONS = 2;

/** Opens the members of a cluster. Throws STORE_ERROR in the same cases as `openGatewayStore`. */
export function openMembers({
  postgresUrl,
  logger,
}: Pick<StoreOptions, 'logger'> & { postgresUrl: string }): Promise<OpenedMembers> {
  return openPostgres(
    postgresUrl,
    'members',
    logger,
    ({ PostgresMembers }, database) => ({
      members: new PostgresMembers(database),
      close: () => database.close(),
    }),
    { maxConnections: MEMBER_CONNECTIONS },
  );
}
