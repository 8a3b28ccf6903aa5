import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type { MemberRecord, MemberStore, WebhookInbox } from '../../../../../store/ports/index.ts';
import type { Fence } from '../../../../membership/membership.ts';
import type { AttemptEnd, QueuedDelivery } from './attempts.ts';
import type { GatewayCalls } from './gateway-calls.ts';
import { isUnfinished, type RequestedAttempts } from './requested-attempts.ts';

export interface OtherGatewaysDeps {
  members: Pick<MemberStore, 'live' | 'unended'>;
  fence: Pick<Fence, 'require'> & { readonly fence: number };
  calls: Pick<GatewayCalls, 'attempt' | 'announce'>;
  inbox: Pick<WebhookInbox, 'find'>;
  /**
   * Attempts that this gateway runs for an earlier scheduler. The scheduler is the gateway that assigns deliveries to
   * all gateways.
   */
  own: Pick<RequestedAttempts, 'running' | 'follow'>;
  /** Maximum concurrent attempts per gateway. */
  concurrency: number;
  clock: Clock;
  logger: Logger;
}

interface Gateway {
  fence: number;
  url: string;
  /** Whether the gateway is stopping. It gets no further attempts, but its running attempts count until it has ended. */
  isDraining: boolean;
  running: number;
  /** Aborts pending calls to the gateway after the gateway has ended. */
  ended: AbortController;
}

const UNREAD: AttemptEnd = { nextAttemptAt: undefined, isUnread: true };
/** Interval between two checks for the outcome of an attempt whose call failed, in ms of wall-clock time. */
const RECHECK_MS = seconds(1);
/**
 * Pause after a gateway refuses a delivery, in ms. During the pause, the gateway gets no deliveries of the same plugin.
 */
const REFUSED_MS = seconds(5);

/**
 * Runs attempts on the other gateways that share the store. Used only by the gateway that schedules the deliveries of
 * all nodes. @spec docs/decisions/0222
 */
export class OtherGateways {
  readonly #deps: OtherGatewaysDeps;
  readonly #gateways = new Map<number, Gateway>();
  /**
   * Maps the webhook id of each attempt that was running when this gateway became the scheduler to the fence token of
   * the gateway that ran it. A copy of such a delivery in memory can be older than the outcome of the attempt.
   */
  readonly #startedEarlier = new Map<string, number>();
  /**
   * End of the pause after a refusal, in monotonic ms. The key consists of the gateway's fence token and the plugin id.
   */
  readonly #refusals = new Map<string, number>();
  #isClosed = false;

  constructor(deps: OtherGatewaysDeps) {
    this.#deps = deps;
  }

  /** Maximum number of attempts that the other gateways can run concurrently. */
  get capacity(): number {
    const serving = [...this.#gateways.values()].filter(({ isDraining }) => !isDraining);
    return serving.length * this.#deps.concurrency;
  }

  /**
   * Updates the list of live gateways. Aborts pending calls to gateways that have ended. Resolves with whether a
   * gateway has ended.
   */
  async refresh(): Promise<boolean> {
    const { members, fence } = this.#deps;
    const [live, unended] = await Promise.all([members.live('gateway'), members.unended('gateway')]);
    const ended = [...this.#gateways].filter(([id]) => !unended.includes(id));
    for (const [, gateway] of ended) this.#remove(gateway);
    for (const member of live) if (member.fence !== fence.fence) this.#update(member);
    return ended.length > 0;
  }

  /**
   * Makes this gateway the scheduler. Resolves once every other gateway has reported its running attempts or has ended.
   * No attempt can then run twice at the same time.
   */
  async takeOver(): Promise<void> {
    const { fence, own } = this.#deps;
    for (const id of own.follow(fence.require())) this.#startedEarlier.set(id, fence.fence);
    const announced = new Set<number>();
    while (!this.#isClosed) {
      await this.refresh();
      const missing = [...this.#gateways.values()].filter(({ fence }) => !announced.has(fence));
      if (missing.length === 0) return;
      await Promise.all(
        missing.map(async (each) => (await this.#announceTo(each)) && announced.add(each.fence)),
      );
      if (announced.size < this.#gateways.size) await sleep(RECHECK_MS);
    }
  }

  /**
   * Runs the attempt on another gateway if that gateway is less busy than this gateway. Otherwise, or if the chosen
   * gateway refuses the attempt, resolves with undefined. If an attempt was running for an earlier scheduler, waits for
   * its end and never resolves with undefined, because the given copy of the delivery might be outdated.
   */
  async attempt(
    item: QueuedDelivery,
    { ownRunning, ownLimit }: { ownRunning: number; ownLimit: number },
  ): Promise<AttemptEnd | undefined> {
    const { webhookId } = item.delivery;
    const earlier = this.#startedEarlier.get(webhookId);
    if (earlier !== undefined) {
      this.#startedEarlier.delete(webhookId);
      return (await this.#endOfEarlier(earlier, item)) ?? UNREAD;
    }
    const chosen = this.#leastBusy(item, ownRunning < ownLimit ? ownRunning : Infinity);
    if (!chosen) return undefined;
    const end = await this.#run(chosen, item);
    if (end === undefined)
      this.#refusals.set(refusalKey(chosen, item), this.#deps.clock.monotonic() + REFUSED_MS);
    return end;
  }

  close(): void {
    this.#isClosed = true;
    for (const gateway of this.#gateways.values()) gateway.ended.abort();
  }

  /**
   * Resolves with the outcome of an attempt that was running when this gateway became the scheduler. Resolves with
   * undefined if the attempt has ended or its gateway has left.
   */
  async #endOfEarlier(fence: number, item: QueuedDelivery): Promise<AttemptEnd | undefined> {
    if (fence === this.#deps.fence.fence) return this.#deps.own.running(item.delivery.webhookId);
    const gateway = this.#gateways.get(fence);
    return gateway && this.#run(gateway, item);
  }

  #update({ fence, url, isDraining }: MemberRecord): void {
    const known = this.#gateways.get(fence);
    if (known) known.isDraining = isDraining;
    else if (url !== null)
      this.#gateways.set(fence, { fence, url, isDraining, running: 0, ended: new AbortController() });
  }

  #remove(gateway: Gateway): void {
    this.#gateways.delete(gateway.fence);
    gateway.ended.abort();
    for (const key of this.#refusals.keys())
      if (key.startsWith(`${gateway.fence} `)) this.#refusals.delete(key);
  }

  /**
   * Announces the new scheduler to a gateway and stores the attempts that the gateway still runs. Returns false if the
   * call fails.
   */
  async #announceTo(gateway: Gateway): Promise<boolean> {
    try {
      const running = await this.#deps.calls.announce(gateway.url, this.#deps.fence.require());
      for (const id of running) this.#startedEarlier.set(id, gateway.fence);
      return true;
    } catch (error) {
      this.#deps.logger.warn(
        `Accepted deliveries wait until the gateway at ${gateway.url} answers or its lease ends: ${messageOf(error)}`,
        { error },
      );
      return false;
    }
  }

  #leastBusy(item: QueuedDelivery, ownRunning: number): Gateway | undefined {
    const { concurrency, clock } = this.#deps;
    let best: Gateway | undefined;
    for (const gateway of this.#gateways.values()) {
      if (gateway.isDraining) continue;
      if (gateway.running >= Math.min(concurrency, ownRunning, best?.running ?? Infinity)) continue;
      if ((this.#refusals.get(refusalKey(gateway, item)) ?? 0) <= clock.monotonic()) best = gateway;
    }
    return best;
  }

  async #run(gateway: Gateway, { delivery, attempts }: QueuedDelivery): Promise<AttemptEnd | undefined> {
    const { calls, fence, logger } = this.#deps;
    const { webhookId } = delivery;
    gateway.running++;
    try {
      const request = { scheduler: fence.require(), webhookId, attempts };
      return await calls.attempt(gateway.url, request, gateway.ended.signal);
    } catch (error) {
      if (!gateway.ended.signal.aborted)
        logger.warn(`The gateway at ${gateway.url} was lost during an attempt: ${messageOf(error)}`, {
          error,
          meta: { webhookId },
        });
      return await this.#outcome(gateway, webhookId, attempts);
    } finally {
      gateway.running--;
    }
  }

  /**
   * Polls for the outcome of an attempt whose call failed. Ends when the outcome is stored, or when the gateway no
   * longer runs the attempt.
   */
  async #outcome(gateway: Gateway, webhookId: string, attempts: number): Promise<AttemptEnd> {
    while (!this.#isClosed) {
      // The gateway is queried before the record is read. Otherwise, an attempt that ends between the two reads would
      // be missed.
      const stillRuns = !gateway.ended.signal.aborted && (await this.#stillRuns(gateway, webhookId));
      const stored = await this.#storedEnd(webhookId, attempts);
      if (stored) return stored;
      if (!stillRuns) return UNREAD;
      await sleep(RECHECK_MS);
    }
    return UNREAD;
  }

  /**
   * Returns whether the gateway still runs the attempt. Returns true if the gateway does not answer, because the
   * attempt might still run.
   */
  async #stillRuns(gateway: Gateway, webhookId: string): Promise<boolean> {
    try {
      const running = await this.#deps.calls.announce(gateway.url, this.#deps.fence.require());
      return running.includes(webhookId);
    } catch {
      return true;
    }
  }

  async #storedEnd(webhookId: string, attempts: number): Promise<AttemptEnd | undefined> {
    try {
      const record = await this.#deps.inbox.find(webhookId);
      if (!record || !isUnfinished(record)) return { nextAttemptAt: undefined, isUnread: false };
      if (record.attempts <= attempts) return undefined;
      return { nextAttemptAt: record.nextAttemptAt ?? undefined, isUnread: false };
    } catch {
      return undefined;
    }
  }
}

const refusalKey = ({ fence }: Gateway, { delivery }: QueuedDelivery): string =>
  `${fence} ${delivery.pluginId}`;
