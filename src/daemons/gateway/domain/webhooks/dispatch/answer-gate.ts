import type { QueuedDelivery } from './attempts.ts';

/** Delays handlers until the 202 of their delivery is written. */
export class AnswerGate {
  /** Ids not answered yet; with the delivery once it is next in the queue and has its slot and order. */
  readonly #unanswered = new Map<string, QueuedDelivery | undefined>();
  readonly #released: QueuedDelivery[] = [];

  expect(webhookId: string): void {
    this.#unanswered.set(webhookId, undefined);
  }

  /** Returns whether the delivery was already waiting; `next` returns it then. */
  answered(webhookId: string): boolean {
    const item = this.#unanswered.get(webhookId);
    this.#unanswered.delete(webhookId);
    if (!item) return false;
    this.#released.push(item);
    return true;
  }

  /** Holds a delivery whose 202 is pending; returns false if it may start. */
  keeps(item: QueuedDelivery): boolean {
    const { webhookId } = item.delivery;
    if (!this.#unanswered.has(webhookId)) return false;
    this.#unanswered.set(webhookId, item);
    return true;
  }

  /** The first held delivery that is answered by now. These start before all others. */
  next(): QueuedDelivery | undefined {
    return this.#released.shift();
  }
}
