import type { PlatformConfig } from '../../../contracts/index.ts';

/** This file defines the messages between the `telemetry.db` worker and its owner. */

export interface WriterData {
  mode: 'write';
  dataDir: string;
  retention: Pick<PlatformConfig['retention'], 'logsDays' | 'analyticsDays' | 'telemetryMaxBytes'>;
}

export type TelemetryWorkerData = WriterData | { mode: 'read'; dataDir: string };

/** The writer answers `flush` and `close` once all earlier lines are written. `close` also ends the thread. */
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
