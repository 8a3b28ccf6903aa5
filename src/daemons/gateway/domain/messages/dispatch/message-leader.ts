import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { MemberStore } from '../../../../../store/ports/index.ts';
import type { Membership } from '../../../../membership/membership.ts';
import type { MessageDispatcher } from './message-dispatcher.ts';

export interface MessageLeaderDeps {
  dispatcher: Pick<MessageDispatcher, 'scan'>;
  members: Pick<MemberStore, 'unended'>;
  membership: Pick<Membership, 'fence' | 'isHeld'>;
  /** Whether other processes use the store. */
  isShared: boolean;
  logger: Logger;
}

/** Interval at which the leader finds messages that other processes stored, in ms of wall-clock time. */
const POLL_MS = 200;
/** Interval of the same look-up in the only process of a store, for deliveries that a fault has left behind. */
const RESCAN_MS = 30_000;
const CHECK_MS = 1000;

/**
 * Lets one process of a store send messages, so that order and rates apply across all nodes. The leader is the oldest
 * gateway that has not ended. @spec docs/decisions/0222
 */
export class MessageLeader {
  readonly #deps: MessageLeaderDeps;
  #isLeader = false;
  #timer: NodeJS.Timeout | undefined;
  #step: Promise<void> | undefined;
  #isClosed = false;

  constructor(deps: MessageLeaderDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (this.#timer === undefined && this.#step === undefined && !this.#isClosed) this.#run();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#step;
  }

  #run(): void {
    const startedAt = performance.now();
    this.#step = this.#work().finally(() => {
      this.#step = undefined;
      if (this.#isClosed) return;
      const ms = this.#isLeader ? (this.#deps.isShared ? POLL_MS : RESCAN_MS) : CHECK_MS;
      // A look-up over many endpoints must not take most of the time.
      const delay = Math.max(ms, (performance.now() - startedAt) * 5);
      this.#timer = setTimeout(() => this.#run(), delay).unref();
    });
  }

  async #work(): Promise<void> {
    const { dispatcher, logger, membership } = this.#deps;
    try {
      this.#isLeader ||= await this.#mayLead();
      if (this.#isLeader && membership.isHeld) await dispatcher.scan();
    } catch (error) {
      logger.warn('Messages could not be read from the store; retrying', { error });
    }
  }

  async #mayLead(): Promise<boolean> {
    const { isShared, members, membership, logger } = this.#deps;
    if (!isShared) return true;
    const fences = await members.unended('gateway');
    if (membership.fence !== Math.min(...fences)) return false;
    logger.info('This node sends the messages of all nodes');
    return true;
  }
}
