import { join } from 'node:path';
import type { PlatformConfig, ServiceName } from '../contracts/index.ts';
import { withoutEvents } from '../kit/telemetry/analytics.ts';
import { createLogger, type Logger } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import { TelemetryWriter } from '../store/telemetry/writer.ts';
import type { DataFolder } from './data-folder.ts';
import { type LogFile, openLogFile } from './log-file.ts';

export type LogSource = ServiceName | 'supervisor';

export interface SupervisorLogsOptions {
  folder: DataFolder;
  retention: PlatformConfig['retention'];
  /** URL of PostgreSQL, or null for `telemetry.db` in the data folder. */
  postgresUrl: string | null;
  /** Id of this node, which its telemetry is counted under. */
  node: string;
  clock: Clock;
  onLines?: ((source: LogSource, lines: Buffer) => void) | undefined;
}

/** Stores the output of all services as telemetry. Also writes log records to the log files. */
export class SupervisorLogs {
  readonly logger: Logger;
  readonly #options: SupervisorLogsOptions;
  readonly #telemetry: TelemetryWriter;
  readonly #files = new Map<LogSource, LogFile>();

  constructor(options: SupervisorLogsOptions) {
    const { folder, retention, postgresUrl, node, clock } = options;
    this.#options = options;
    this.#telemetry = new TelemetryWriter({
      dataDir: folder.root,
      postgresUrl,
      node,
      retention,
      onDropped: (count, failure) => reportDropped(this.logger, count, failure),
    });
    const output = { write: (line: string) => this.write('supervisor', Buffer.from(line)), flush: () => {} };
    this.logger = createLogger({ serviceId: 'supervisor', output, clock });
  }

  /** Starts the thread that stores telemetry. Lines that were written before this call are also stored. */
  startTelemetry(): void {
    this.#telemetry.start();
  }

  write(source: LogSource, block: Buffer): void {
    this.#telemetry.push(source, block);
    const lines = withoutEvents(block);
    if (lines.length === 0) return;
    const file = this.#files.get(source) ?? openLogFile(join(this.#options.folder.logs, `${source}.log`));
    this.#files.set(source, file);
    file.write(lines);
    this.#options.onLines?.(source, lines);
  }

  async close(): Promise<void> {
    await this.#telemetry.close();
    for (const file of this.#files.values()) file.close();
  }
}

function reportDropped(logger: Logger, count: number, failure: string | undefined): void {
  logger.diagnostic({
    domain: 'telemetry',
    event: 'telemetry.dropped',
    level: 'warn',
    reasonCode: 'TELEMETRY_DROPPED',
    message: `${count} records were not stored as telemetry (${failure ?? 'rate limit exceeded'}); the log files contain them`,
    outcome: 'degraded',
    evidence: { count, ...(failure ? { failure } : {}) },
  });
}
