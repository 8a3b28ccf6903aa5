import type { PlatformConfig } from '../../contracts/index.ts';

/** Messages between the telemetry worker thread and its parent thread. */

export interface WriterData {
  mode: 'write';
  dataDir: string;
  /** URL of PostgreSQL, or null for `telemetry.db` in `dataDir`. */
  postgresUrl: string | null;
  /** Id of this node, under which PostgreSQL counts its records. */
  node?: string;
  retention: Pick<PlatformConfig['retention'], 'logsDays' | 'analyticsDays' | 'telemetryMaxBytes'>;
}

export type TelemetryWorkerData = WriterData | { mode: 'read'; dataDir: string };

/**
 * Messages to the writer thread. The thread replies to `flush` and `close` when all earlier lines are written. After
 * `close`, the thread ends.
 */
export type ToWriter =
  | { type: 'lines'; service: string; lines: Uint8Array }
  /** Number of lines that were dropped because the writer was too slow. */
  | { type: 'lost'; service: string; count: number }
  | { type: 'flush' }
  | { type: 'close' };

export type FromWriter =
  | { type: 'taken'; bytes: number }
  | { type: 'flushed' }
  | { type: 'closed' }
  /** Number of records that were dropped since the last report. */
  | { type: 'dropped'; count: number; failure?: string };
