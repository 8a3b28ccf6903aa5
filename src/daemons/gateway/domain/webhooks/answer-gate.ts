import type { QueuedDelivery } from './attempts.ts';

/** Holds deliveries back whose 202 is not written yet. */
export class AnswerGate {
  /** With the delivery once its turn came; it has its lane and its order. */
  readonly #unanswered = new Map<string, QueuedDelivery | undefined>();
  readonly #released: QueuedDelivery[] = [];

  expect(webhookId: string): void {
    this.#unanswered.set(webhookId, undefined);
  }

  /** Returns whether a delivery whose turn came was waiting for it; `next` has it then. */
  answered(webhookId: string): boolean {
    const item = this.#unanswered.get(webhookId);
    this.#unanswered.delete(webhookId);
    if (!item) return false;
    this.#released.push(item);
    return true;
  }

  /** Keeps a delivery whose turn came too early; returns false where it may start. */
  keeps(item: QueuedDelivery): boolean {
    const { webhookId } = item.delivery;
    if (!this.#unanswered.has(webhookId)) return false;
    this.#unanswered.set(webhookId, item);
    return true;
  }

  /** The first of those that were held back and are answered now. They start before all others. */
  next(): QueuedDelivery | undefined {
    return this.#released.shift();
  }
}
