import type { PlatformConfig } from '../../../contracts/index.ts';
import { createLogger, type Logger } from '../../../kit/telemetry/logger.ts';
import { BufferedOutput, type LineOutput } from '../../../kit/telemetry/output.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { TelemetryWriter } from '../../../store/telemetry/writer.ts';
import type { CommandContext } from '../../context.ts';
import { loadRecordFormat } from '../../log-format.ts';
import { ServiceOutput } from './service-output.ts';

export interface ServiceLogsOptions {
  name: string;
  dataDir: string;
  /** URL of PostgreSQL, or null for `telemetry.db` in the data folder. */
  postgresUrl: string | null;
  /** Id of this node, which its telemetry is counted under. */
  node: string;
  retention: PlatformConfig['retention'];
}

/** Prints the log of a service to stdout and stores it as telemetry, as a supervisor does for its services. */
export class ServiceLogs {
  readonly logger: Logger;
  readonly output: LineOutput;
  readonly #telemetry: TelemetryWriter;

  private constructor({ name, ...stored }: ServiceLogsOptions, print: LineOutput | undefined) {
    this.#telemetry = new TelemetryWriter({
      ...stored,
      onDropped: (count, failure) => this.#reportDropped(count, failure),
    });
    this.output = new ServiceOutput({
      store: (lines) => this.#telemetry.push(name, lines),
      print: print ?? new BufferedOutput(1, systemClock, (count) => this.#reportUnread(count)),
    });
    this.logger = createLogger({ serviceId: name, output: this.output, clock: systemClock });
  }

  /** Prints JSON lines, or formatted lines on a terminal without `--json`. */
  static async open(
    options: ServiceLogsOptions,
    { ui, globals }: Pick<CommandContext, 'ui' | 'globals'>,
  ): Promise<ServiceLogs> {
    const format = ui.interactive && !globals.json ? await loadRecordFormat(ui.out) : undefined;
    if (!format) return new ServiceLogs(options, undefined);
    return new ServiceLogs(options, {
      write(lines) {
        for (const line of lines.trimEnd().split('\n')) ui.line(format(line));
      },
      flush() {},
    });
  }

  /** Starts the thread that stores telemetry. Lines that were written before this call are also stored. */
  startTelemetry(): void {
    this.#telemetry.start();
  }

  async close(): Promise<void> {
    this.output.flush();
    await this.#telemetry.close();
    this.output.flush();
  }

  #reportDropped(count: number, failure: string | undefined): void {
    this.logger.diagnostic({
      domain: 'telemetry',
      event: 'telemetry.dropped',
      level: 'warn',
      reasonCode: 'TELEMETRY_DROPPED',
      message: `${count} records were not stored as telemetry (${failure ?? 'rate limit exceeded'}); stdout contains them`,
      outcome: 'degraded',
      evidence: { count, ...(failure ? { failure } : {}) },
    });
  }

  #reportUnread(count: number): void {
    this.logger.diagnostic({
      domain: 'telemetry',
      event: 'telemetry.lines_dropped',
      level: 'warn',
      reasonCode: 'LOG_LINES_DROPPED',
      message: `${count} lines of this log were dropped: the reader of stdout did not read them in time`,
      outcome: 'degraded',
      evidence: { dropped: count },
    });
  }
}
