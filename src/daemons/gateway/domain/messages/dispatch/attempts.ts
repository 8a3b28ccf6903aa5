import { DEFAULT_RETRY_SCHEDULE } from '../../../../../contracts/index.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { DueDelivery } from '../../../../../store/ports/index.ts';
import type { KnownEndpoint } from '../endpoint-registry.ts';
import type { MessageSender, SentAttempt } from '../message-sender.ts';
import { endOf, foreignEnd } from './attempt-end.ts';
import type { AttemptEnds } from './attempt-ends.ts';
import type { AttemptSlot } from './attempt-slots.ts';
import type { EndpointEnds } from './endpoint-ends.ts';
import type { EndpointQueue } from './endpoint-queue.ts';
import type { MessageContents } from './message-contents.ts';

export interface AttemptsDeps {
  contents: MessageContents;
  sender: MessageSender;
  ends: AttemptEnds;
  endpointEnds: EndpointEnds;
  clock: Clock;
  random: Pick<Random, 'fraction'>;
  /** Cuts off attempts when the service stops. */
  signal: AbortSignal;
  observe(outcome: 'succeeded' | 'failed', durationMs: number): void;
}

/** Sends started deliveries, and notes their ends. */
export class Attempts {
  readonly #deps: AttemptsDeps;

  constructor(deps: AttemptsDeps) {
    this.#deps = deps;
  }

  /** Rejects if the content cannot be read. */
  async make(
    queue: EndpointQueue,
    known: KnownEndpoint,
    delivery: DueDelivery,
    slot: AttemptSlot,
  ): Promise<void> {
    const { contents, sender, signal } = this.#deps;
    const { messageId } = delivery;
    const content = contents.held(messageId) ?? (await contents.read(messageId, queue.upcoming));
    if (!content) throw new Error(`The message ${messageId} has no content.`);
    slot.resize(content.body.byteLength);
    // Users of the other application can change the URL of the endpoint.
    if (content.application !== known.record.application) return this.#skipForeign(queue, delivery);
    const sent = await sender.send(known, content, signal);
    // An attempt that the stop of the service has cut off is repeated after the start.
    if (sent.responseStatus === null && signal.aborted) return;
    this.#ended(queue, known, delivery, sent);
  }

  #skipForeign(queue: EndpointQueue, delivery: DueDelivery): void {
    queue.skipped();
    this.#deps.ends.add(foreignEnd(delivery, this.#deps.clock.now()), null, queue.isOrdered);
  }

  #ended(queue: EndpointQueue, known: KnownEndpoint, delivery: DueDelivery, sent: SentAttempt): void {
    const { clock, random, observe, ends, endpointEnds } = this.#deps;
    const { end, failingSince, disable } = endOf(delivery, sent, {
      schedule: known.record.retrySchedule ?? DEFAULT_RETRY_SCHEDULE,
      failingSince: queue.failingSince,
      now: clock.now(),
      fraction: random.fraction(),
    });
    const failure =
      failingSince === queue.failingSince ? null : { endpointId: delivery.endpointId, failingSince };
    queue.failingSince = failingSince;
    queue.ended(end.succeeded);
    observe(end.succeeded ? 'succeeded' : 'failed', sent.durationMs);
    ends.add(end, failure, queue.isOrdered || disable !== null);
    if (disable !== null) endpointEnds.disable(known.record, disable);
  }
}
