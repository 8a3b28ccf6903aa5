import type { QueuedDelivery } from './attempts.ts';

/** Delays the handler of an async delivery until its 202 response is written. */
export class AnswerGate {
  /**
   * Deliveries whose response is not written yet, by webhook id. The value is undefined until the queue returns the
   * delivery.
   */
  readonly #unanswered = new Map<string, QueuedDelivery | undefined>();
  readonly #released: QueuedDelivery[] = [];

  expect(webhookId: string): void {
    this.#unanswered.set(webhookId, undefined);
  }

  /**
   * Records that the response of a delivery is written. Returns true if the delivery was held for this response. `next`
   * then returns the delivery.
   */
  answered(webhookId: string): boolean {
    const item = this.#unanswered.get(webhookId);
    this.#unanswered.delete(webhookId);
    if (!item) return false;
    this.#released.push(item);
    return true;
  }

  /** Puts the delivery on hold if its response is not written yet. Returns true if the delivery is on hold. */
  keeps(item: QueuedDelivery): boolean {
    const { webhookId } = item.delivery;
    if (!this.#unanswered.has(webhookId)) return false;
    this.#unanswered.set(webhookId, item);
    return true;
  }

  /**
   * Removes and returns the first held delivery whose response is written. Such deliveries start before queued
   * deliveries.
   */
  next(): QueuedDelivery | undefined {
    return this.#released.shift();
  }
}
