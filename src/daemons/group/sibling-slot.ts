import { PlatformError } from '../../kit/errors/errors.ts';
import { createCrashPolicy } from '../../kit/process/crash-policy.ts';
import { type Answer, createLink } from './link.ts';
import type { PrimaryOptions } from './primary-options.ts';
import type { Member } from './process-group.ts';
import { type SiblingProgram, startSiblingProgram } from './sibling-program.ts';

export interface SiblingSlotOptions extends PrimaryOptions {
  place: number;
  listen: { host: string; port: number };
  answers: ReadonlyMap<string, Answer<Member>>;
  onUp: (member: Member, program: SiblingProgram) => void;
  onDown: (member: Member) => void;
}

/** A numbered slot of a sibling. After a crash, a new process starts in the same slot. */
export class SiblingSlot {
  readonly #options: SiblingSlotOptions;
  readonly #crashes: ReturnType<typeof createCrashPolicy>;
  #current: SiblingProgram | undefined;
  #isStopping = false;
  #restartTimer: NodeJS.Timeout | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(options: SiblingSlotOptions) {
    this.#options = options;
    this.#crashes = createCrashPolicy(options);
    this.#launch();
  }

  stop(): void {
    this.#isStopping = true;
    clearTimeout(this.#restartTimer);
    this.#current?.stop();
  }

  /** Resolves when the current process has ended. */
  ended(): Promise<void> {
    return this.#ended;
  }

  #launch(): void {
    const { name, place, logger, clock, listen, answers, onUp, onDown } = this.#options;
    let readyAt: number | undefined;
    const program = startSiblingProgram({
      ...this.#options,
      start: { ...this.#options.describe(), listen, sibling: { place } },
      onFrame: (frame, socket) => link.receive(frame, socket),
      onListening() {
        readyAt = clock.monotonic();
        logger.info(`Process ${place} of ${name} is ready`, { meta: { place, pid: program.pid } });
      },
    });
    const member: Member = {
      place,
      pid: program.pid,
      ask: (...args) => link.ask(...args),
      call: (...args) => link.call(...args),
    };
    const link = createLink({ send: program.send, answers, from: member });
    this.#current = program;
    onUp(member, program);
    this.#ended = program.ended.then((how) => {
      this.#current = undefined;
      link.close();
      onDown(member);
      if (!this.#isStopping) this.#restart(how, readyAt === undefined ? 0 : clock.monotonic() - readyAt);
    });
  }

  #restart(how: string, uptimeMs: number): void {
    const { name, place, logger } = this.#options;
    const verdict = this.#crashes.crashed(uptimeMs);
    if (verdict.loop) {
      giveUp(this.#options, how, verdict.crashes);
      return;
    }
    const { delayMs } = verdict;
    logger.diagnostic({
      domain: 'daemon',
      event: 'daemon.process_ended',
      level: 'error',
      reasonCode: 'PROCESS_ENDED',
      message: `Process ${place} of ${name} ended unexpectedly (${how}); restarting it in ${delayMs}ms`,
      outcome: 'degraded',
      evidence: { place, how, retryInMs: delayMs },
    });
    this.#restartTimer = setTimeout(() => this.#launch(), delayMs);
  }
}

/** @spec docs/decisions/0037 */
function giveUp(
  { name, place, size, logger, onGivenUp }: SiblingSlotOptions,
  how: string,
  crashes: number,
): void {
  const error = new PlatformError(
    'INTERNAL_ERROR',
    `Process ${place} of ${size} of ${name} ended ${crashes} times within a minute, most recently with ${how}; see the log for the cause. To run without siblings, set ${name}.processes to 1.`,
    { details: { place, how, crashes } },
  );
  logger.diagnostic({
    domain: 'daemon',
    event: 'daemon.crash_loop',
    level: 'fatal',
    reasonCode: 'CRASH_LOOP',
    message: `${name} exits: ${error.message}`,
    outcome: 'failed',
    evidence: error.details,
  });
  onGivenUp(error);
}
