import type { PlatformConfig } from '../../contracts/index.ts';

/** What the thread that has `telemetry.db` open and the one that started it say to each other. */

export interface WriterData {
  mode: 'write';
  dataDir: string;
  retention: Pick<PlatformConfig['retention'], 'logsDays' | 'analyticsDays' | 'telemetryMaxBytes'>;
}

export type TelemetryWorkerData = WriterData | { mode: 'read'; dataDir: string };

/** `flush` answers once all lines before it are written, `close` too, and ends the thread. */
export type ToWriter =
  | { type: 'lines'; service: string; lines: Uint8Array }
  /** So many lines never came: too many were on their way. */
  | { type: 'lost'; service: string; count: number }
  | { type: 'flush' }
  | { type: 'close' };

export type FromWriter =
  | { type: 'taken'; bytes: number }
  | { type: 'flushed' }
  | { type: 'closed' }
  /** Records that were not kept since the last report. */
  | { type: 'dropped'; count: number; failure?: string };
