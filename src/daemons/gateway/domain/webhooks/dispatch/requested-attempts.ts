import type { DeliveryRecord, WebhookInbox } from '../../../../../store/ports/index.ts';
import type { Membership } from '../../../../membership/membership.ts';
import { payloadOf } from '../receive/payload.ts';
import type { WebhookTargets } from '../receive/targets.ts';
import type { AttemptEnd, Attempts } from './attempts.ts';
import type { NeededServices } from './needed-services.ts';

export interface RequestedAttemptsDeps {
  attempts: Pick<Attempts, 'attempt'>;
  inbox: Pick<WebhookInbox, 'find'>;
  targets: Pick<WebhookTargets, 'find'>;
  services: Pick<NeededServices, 'isUnavailable' | 'confirm'>;
  membership: Pick<Membership, 'isHeld'>;
}

export interface AttemptRequest {
  /** Fence of the gateway that sends the request. */
  scheduler: number;
  webhookId: string;
  /** Number of attempts that the scheduler knows of. */
  attempts: number;
}

/**
 * Runs attempts for the gateway that schedules the deliveries of all nodes. Requests of an earlier scheduler are
 * refused, because its successor may have started the same delivery. @spec docs/decisions/0222
 */
export class RequestedAttempts {
  readonly #deps: RequestedAttemptsDeps;
  readonly #running = new Map<string, Promise<AttemptEnd | undefined>>();
  /** The latest scheduler. A successor always has a higher fence. */
  #scheduler = 0;
  #isClosed = false;

  constructor(deps: RequestedAttemptsDeps) {
    this.#deps = deps;
  }

  /** Accepts a new scheduler, and returns the ids of deliveries whose attempts still run. */
  follow(scheduler: number): string[] {
    this.#scheduler = Math.max(this.#scheduler, scheduler);
    return [...this.#running.keys()];
  }

  /**
   * Resolves with the end of the attempt, or with undefined if this gateway does not run it. A second request for a
   * delivery whose attempt still runs waits for that attempt.
   */
  run(request: AttemptRequest): Promise<AttemptEnd | undefined> {
    const { scheduler, webhookId } = request;
    if (this.#isClosed || scheduler < this.#scheduler || !this.#deps.membership.isHeld)
      return Promise.resolve(undefined);
    this.#scheduler = scheduler;
    const running = this.#running.get(webhookId);
    if (running) return running;
    const started = this.#run(request).finally(() => this.#running.delete(webhookId));
    this.#running.set(webhookId, started);
    return started;
  }

  /** Returns the attempt that still runs for an earlier scheduler, if any. */
  running(webhookId: string): Promise<AttemptEnd | undefined> | undefined {
    return this.#running.get(webhookId);
  }

  /** Refuses further requests, and waits for the attempts that still run. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running.values());
  }

  async #run({ webhookId, attempts }: AttemptRequest): Promise<AttemptEnd | undefined> {
    const { inbox, targets, services } = this.#deps;
    const record = await inbox.find(webhookId);
    if (!record || !isUnfinished(record)) return { nextAttemptAt: undefined, isUnread: false };
    // The scheduler then reads the record again, with its attempts and the time of the next one.
    if (record.attempts !== attempts) return { nextAttemptAt: undefined, isUnread: true };
    const target = targets.find(record.pluginId, record.event);
    if (!target) return undefined;
    await services.confirm(target);
    if (services.isUnavailable(target)) return undefined;
    const payload = payloadOf(record.body);
    return this.#deps.attempts.attempt(
      { delivery: record, target, payload, attempts, marker: record.marker },
      target,
    );
  }
}

/** Whether an async delivery still needs an attempt. */
export function isUnfinished({ status }: Pick<DeliveryRecord, 'status'>): boolean {
  return status === 'accepted' || status === 'retrying';
}
