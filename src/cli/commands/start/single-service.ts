import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningDaemon } from '../../../daemons/run-daemon.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { EXIT } from '../../exit-codes.ts';

export interface SingleServiceOptions {
  name: string;
  start(): Promise<RunningDaemon>;
  logger: Logger;
  /** Time in ms for which the service stays open after `/ready` answers 503. */
  drainDelayMs: number;
  /** Maximum time in ms of a stop, counted from the end of `drainDelayMs`, or from the stop of a service that starts. */
  deadlineMs: number;
}

/** Runs a service in this process until a signal or a fatal error. */
export class SingleService {
  /** Resolves with the exit code when the service has stopped. Rejects if the service cannot start. */
  readonly ended: Promise<number>;
  readonly #options: SingleServiceOptions;
  readonly #end = Promise.withResolvers<number>();
  #starting: Promise<RunningDaemon> | undefined;
  #hasStarted = false;
  #isStopping = false;

  constructor(options: SingleServiceOptions) {
    this.#options = options;
    this.ended = this.#end.promise;
  }

  start(): void {
    this.#starting = this.#options.start();
    this.#starting.then(() => {
      this.#hasStarted = true;
    }, this.#end.reject);
  }

  /** Drains the service, and ends with `exitCode`. Further calls have no effect. */
  stop(exitCode: number): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#drain().then(
      () => this.#end.resolve(exitCode),
      (error) => this.fail(error),
    );
  }

  /** Ends at once after an unexpected error. */
  fail(error: unknown): void {
    const { name, logger } = this.#options;
    logger.fatal(`${name} exits: ${messageOf(error)}`, { error });
    this.#end.resolve(EXIT.failed);
  }

  async #drain(): Promise<void> {
    const { drainDelayMs, deadlineMs } = this.#options;
    // No client knows a service that starts, so it needs no delay before it closes.
    const delayMs = this.#hasStarted ? drainDelayMs : 0;
    const late = AbortSignal.timeout(delayMs + deadlineMs);
    late.addEventListener('abort', () => this.fail(this.#lateError(deadlineMs)));
    const daemon = await this.#starting?.catch(() => undefined);
    if (!daemon) return;
    daemon.becomeUnready();
    await sleep(delayMs);
    await daemon.close();
  }

  #lateError(deadlineMs: number): Error {
    const { name } = this.#options;
    return new Error(
      this.#hasStarted
        ? `${name} did not drain within ${deadlineMs} ms`
        : `it was still starting ${deadlineMs} ms after the stop signal. Its store may be unreachable or locked by a migration`,
    );
  }
}
