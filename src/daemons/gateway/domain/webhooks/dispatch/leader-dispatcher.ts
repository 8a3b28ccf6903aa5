import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { MemberStore, NewDelivery } from '../../../../../store/ports/index.ts';
import type { Membership } from '../../../../membership/membership.ts';
import type { JsonPayload } from '../receive/payload.ts';
import type { DeclaredWebhook } from '../receive/targets.ts';
import type { InboxDispatcher } from './dispatcher.ts';
import type { LeaderNotice } from './leader-notice.ts';
import type { OtherGateways } from './other-gateways.ts';
import type { WebhookDispatcher } from './webhook-dispatcher.ts';

export interface LeaderDispatcherDeps {
  dispatcher: InboxDispatcher;
  others: OtherGateways;
  notice: LeaderNotice;
  members: Pick<MemberStore, 'live' | 'unended'>;
  membership: Pick<Membership, 'fence' | 'isHeld'>;
  logger: Logger;
}

/** Interval at which the leader reads deliveries that other nodes accepted, in ms of wall-clock time. */
const POLL_MS = 200;
/** Number of polls between two checks of whether this node is the leader. */
const POLLS_PER_CHECK = 5;
/** Checks after the end of a gateway within which another process has freed its deliveries. */
const RESCANS = 10;

/**
 * Dispatcher of a node that shares its store. Every node accepts deliveries and runs handlers. Only the leader
 * schedules deliveries, so that limits and pauses apply across all nodes. The leader is the oldest gateway that has not
 * ended. @spec docs/decisions/0222
 */
export class LeaderDispatcher implements WebhookDispatcher {
  readonly #deps: LeaderDispatcherDeps;
  #isLeader = false;
  #polls = 0;
  /** Number of checks at which all stored deliveries are read again. */
  #rescans = 0;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;
  #isClosed = false;

  constructor(deps: LeaderDispatcherDeps) {
    this.#deps = deps;
  }

  enqueue(
    delivery: NewDelivery,
    target: DeclaredWebhook,
    payload: JsonPayload,
    marker?: Uint8Array | null,
  ): void {
    if (!this.#isLeader) return;
    // Another node might have accepted an earlier delivery with the same order key. The store therefore determines the
    // order.
    if (delivery.orderKey !== null) this.#deps.dispatcher.pull();
    else this.#deps.dispatcher.enqueue(delivery, target, payload, marker);
  }

  /** Applies to every node, because this node can become the leader before it has sent the response. */
  expectAnswer(webhookId: string): void {
    this.#deps.dispatcher.expectAnswer(webhookId);
  }

  answered(webhookId: string): void {
    this.#deps.dispatcher.answered(webhookId);
    if (!this.#isLeader) this.#deps.notice.send();
  }

  get load(): { waiting: number; running: number } {
    return this.#deps.dispatcher.load;
  }

  receiving(change: 1 | -1): void {
    this.#deps.dispatcher.receiving(change);
  }

  /** Schedules all stored deliveries if this node is the leader. The first call also starts polling. */
  runBacklog(): void {
    if (this.#isLeader) this.#deps.dispatcher.runBacklog();
    if (this.#timer === undefined && !this.#isClosed) this.#poll();
  }

  pull(): void {
    if (this.#isLeader && this.#deps.membership.isHeld && !this.#isClosed) this.#deps.dispatcher.pull();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#deps.others.close();
    this.#deps.notice.close();
    await this.#polling;
    await this.#deps.dispatcher.close();
  }

  #poll(): void {
    this.#polling = this.#step().finally(() => {
      if (this.#isClosed) return;
      this.#timer = setTimeout(() => this.#poll(), POLL_MS).unref();
    });
  }

  async #step(): Promise<void> {
    const { logger } = this.#deps;
    try {
      if (this.#polls++ % POLLS_PER_CHECK === 0)
        await (this.#isLeader ? this.#refresh() : this.#checkLeader());
    } catch (error) {
      logger.warn('The gateways of the store could not be read; retrying', { error });
    }
    this.pull();
  }

  /**
   * Updates the other gateways. After the end of a gateway, deliveries that it has answered are accepted again, at
   * positions that were read before.
   */
  async #refresh(): Promise<void> {
    const { others, dispatcher } = this.#deps;
    if (await others.refresh()) this.#rescans = RESCANS;
    if (this.#rescans === 0) return;
    this.#rescans--;
    dispatcher.runBacklog();
  }

  /**
   * Makes this node the leader if its gateway process is the oldest. A leader remains the leader until the process
   * ends.
   */
  async #checkLeader(): Promise<void> {
    const { members, membership, dispatcher, others, notice, logger } = this.#deps;
    const [fences, live] = await Promise.all([members.unended('gateway'), members.live('gateway')]);
    const oldest = Math.min(...fences);
    if (membership.fence !== oldest) {
      notice.setUrl(live.find(({ fence }) => fence === oldest)?.url ?? null);
      return;
    }
    notice.setUrl(null);
    await others.takeOver();
    if (this.#isClosed) return;
    this.#isLeader = true;
    this.#rescans = RESCANS;
    logger.info('This node schedules the accepted deliveries of all nodes');
    dispatcher.runBacklog();
  }
}
