import type { Clock } from '../../../../../kit/time/clock.ts';
import type { MessageStore } from '../../../../../store/ports/index.ts';
import type { AttemptEnds } from './attempt-ends.ts';
import type { EndpointQueue } from './endpoint-queue.ts';

export interface EndpointLoadsDeps {
  store: Pick<MessageStore, 'waiting' | 'retries' | 'nextRetryAt'>;
  ends: Pick<AttemptEnds, 'flush'>;
  clock: Clock;
  /** Whether this process is storing the message. */
  isPublishing(messageId: string): boolean;
}

/** Loads deliveries of an endpoint from the store into its queue. */
export class EndpointLoads {
  readonly #deps: EndpointLoadsDeps;

  constructor(deps: EndpointLoadsDeps) {
    this.#deps = deps;
  }

  async load(queue: EndpointQueue): Promise<void> {
    const { store, ends, clock, isPublishing } = this.#deps;
    const now = clock.now();
    const { retries, limit } = queue.beginLoad(now);
    try {
      // A delivery whose end is not stored would be found again.
      await ends.flush();
      queue.beginRead();
      const found = await (retries ? store.retries(queue.id, now, limit) : store.waiting(queue.id, limit));
      const isFull = found.length >= limit;
      // `push` adds messages that this process is storing. Adding them here too would send them twice.
      if (!retries)
        return queue.loadedWaiting(
          found.filter(({ messageId }) => !isPublishing(messageId)),
          isFull,
        );
      const next = isFull ? now : await store.nextRetryAt(queue.id, now);
      queue.loadedRetries(found, next);
    } catch (error) {
      queue.loadFailed();
      throw error;
    }
  }
}
