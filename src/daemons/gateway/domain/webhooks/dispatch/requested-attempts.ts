import type { DeliveryRecord, WebhookInbox } from '../../../../../store/ports/index.ts';
import type { Membership } from '../../../../membership/membership.ts';
import { payloadOf } from '../receive/payload.ts';
import type { WebhookTargets } from '../receive/targets.ts';
import type { AttemptEnd, Attempts } from './attempts.ts';
import type { NeededServices } from './needed-services.ts';

export interface RequestedAttemptsDeps {
  attempts: Pick<Attempts, 'attempt'>;
  inbox: Pick<WebhookInbox, 'find'>;
  targets: Pick<WebhookTargets, 'of'>;
  services: Pick<NeededServices, 'isUnavailable' | 'confirm'>;
  membership: Pick<Membership, 'isHeld'>;
}

export interface AttemptRequest {
  /** Fence token of the gateway that sends the request. */
  scheduler: number;
  webhookId: string;
  /** Number of past attempts in the sender's copy of the delivery record. */
  attempts: number;
}

/**
 * Runs attempts for the gateway that schedules the deliveries of all nodes. Refuses requests of an earlier scheduler,
 * because the current scheduler might have started the same delivery. @spec docs/decisions/0222
 */
export class RequestedAttempts {
  readonly #deps: RequestedAttemptsDeps;
  readonly #running = new Map<string, Promise<AttemptEnd | undefined>>();
  /** Fence token of the latest scheduler. Each later scheduler has a higher fence token. */
  #scheduler = 0;
  #isLeaving = false;

  constructor(deps: RequestedAttemptsDeps) {
    this.#deps = deps;
  }

  /** Accepts a new scheduler. Returns the ids of deliveries whose attempts are in flight. */
  follow(scheduler: number): string[] {
    this.#scheduler = Math.max(this.#scheduler, scheduler);
    return [...this.#running.keys()];
  }

  /**
   * Resolves with the outcome of the attempt. Resolves with undefined if this gateway refuses the attempt. Repeated
   * requests for a delivery share the attempt in flight.
   */
  run(request: AttemptRequest): Promise<AttemptEnd | undefined> {
    const { scheduler, webhookId } = request;
    if (scheduler < this.#scheduler || !this.#deps.membership.isHeld) return Promise.resolve(undefined);
    this.#scheduler = scheduler;
    const running = this.#running.get(webhookId);
    if (running) return running;
    if (this.#isLeaving) return Promise.resolve(undefined);
    const started = this.#run(request).finally(() => this.#running.delete(webhookId));
    this.#running.set(webhookId, started);
    return started;
  }

  /** Returns a promise for the delivery's attempt in flight, or undefined if no attempt is in flight. */
  running(webhookId: string): Promise<AttemptEnd | undefined> | undefined {
    return this.#running.get(webhookId);
  }

  /** Refuses further attempts, because this gateway will stop. A handler that starts now might be cut off. */
  leave(): void {
    this.#isLeaving = true;
  }

  /** Refuses further attempts and waits for attempts in flight. */
  async close(): Promise<void> {
    this.leave();
    await Promise.allSettled(this.#running.values());
  }

  async #run({ webhookId, attempts }: AttemptRequest): Promise<AttemptEnd | undefined> {
    const { inbox, targets, services } = this.#deps;
    const record = await inbox.find(webhookId);
    if (!record || !isUnfinished(record)) return { nextAttemptAt: undefined, isUnread: false };
    // The attempt counts differ, so `isUnread` makes the scheduler read the record again.
    if (record.attempts !== attempts) return { nextAttemptAt: undefined, isUnread: true };
    const target = targets.of(record);
    if (!target) return undefined;
    await services.confirm(target);
    if (services.isUnavailable(target)) return undefined;
    const payload = await payloadOf(target, record);
    return this.#deps.attempts.attempt(
      { delivery: record, target, payload, attempts, marker: record.marker },
      target,
    );
  }
}

/** Returns whether an async delivery still needs an attempt. */
export function isUnfinished({ status }: Pick<DeliveryRecord, 'status'>): boolean {
  return status === 'accepted' || status === 'retrying';
}
