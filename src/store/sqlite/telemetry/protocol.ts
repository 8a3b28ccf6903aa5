import type { PlatformConfig } from '../../../contracts/index.ts';

/** Messages between the `telemetry.db` worker and its owner. */

export interface WriterData {
  mode: 'write';
  dataDir: string;
  retention: Pick<PlatformConfig['retention'], 'logsDays' | 'analyticsDays' | 'telemetryMaxBytes'>;
}

export type TelemetryWorkerData = WriterData | { mode: 'read'; dataDir: string };

/** `flush` is answered once all earlier lines are written; so is `close`, which also ends the thread. */
export type ToWriter =
  | { type: 'lines'; service: string; lines: Uint8Array }
  /** Lines dropped because too many bytes were in flight. */
  | { type: 'lost'; service: string; count: number }
  | { type: 'flush' }
  | { type: 'close' };

export type FromWriter =
  | { type: 'taken'; bytes: number }
  | { type: 'flushed' }
  | { type: 'closed' }
  /** Records dropped since the last report. */
  | { type: 'dropped'; count: number; failure?: string };
