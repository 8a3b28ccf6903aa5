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
  /** Maximum time in ms of a stop, counted from the end of `drainDelayMs`. */
  deadlineMs: number;
}

/** Runs a service in this process until a signal or a fatal error. */
export class SingleService {
  /** Resolves with the exit code when the service has stopped. Rejects if the service cannot start. */
  readonly ended: Promise<number>;
  readonly #options: SingleServiceOptions;
  readonly #end = Promise.withResolvers<number>();
  #starting: Promise<RunningDaemon> | undefined;
  #isStopping = false;

  constructor(options: SingleServiceOptions) {
    this.#options = options;
    this.ended = this.#end.promise;
  }

  start(): void {
    this.#starting = this.#options.start();
    this.#starting.catch(this.#end.reject);
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
    const daemon = await this.#starting?.catch(() => undefined);
    if (!daemon) return;
    const { name, drainDelayMs, deadlineMs } = this.#options;
    daemon.becomeUnready();
    await sleep(drainDelayMs);
    const late = AbortSignal.timeout(deadlineMs);
    late.addEventListener('abort', () =>
      this.fail(new Error(`${name} did not drain within ${deadlineMs} ms`)),
    );
    await daemon.close();
  }
}
