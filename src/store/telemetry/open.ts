import { silentLogger } from '../../kit/telemetry/logger.ts';
import { openPostgres } from '../open-postgres.ts';
import type { TelemetryStore } from '../ports/telemetry.ts';
import { sqliteTelemetryStore } from '../sqlite/telemetry/store.ts';

/** The writer sends one batch at a time, and deletes old records meanwhile. */
const WRITER_CONNECTIONS = 2;

export interface TelemetryLocation {
  dataDir: string;
  /** URL of PostgreSQL, or null for `telemetry.db` in `dataDir`. */
  postgresUrl: string | null;
  /** Id of this node, under which PostgreSQL counts its records. */
  node?: string | undefined;
}

/** Opens the telemetry store of a worker thread. Throws STORE_ERROR if the store cannot be used. */
export function openTelemetryStore({
  dataDir,
  postgresUrl,
  node,
}: TelemetryLocation): Promise<TelemetryStore> {
  if (postgresUrl === null) return sqliteTelemetryStore({ dataDir });
  return openPostgres(
    postgresUrl,
    'telemetry-writer',
    // No connection log is needed, because the store reports records that could not be stored.
    silentLogger,
    ({ postgresTelemetryStore }, database) => postgresTelemetryStore(database, { node }),
    { maxConnections: WRITER_CONNECTIONS },
  );
}
