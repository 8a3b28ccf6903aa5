import { endpointName } from '../receive/endpoint-name.ts';
import type { QueuedDelivery } from './attempts.ts';

/** Maximum number of deliveries in memory that wait for a slot of one concurrency limit. */
const MAX_WAITING = 200;
/** Number of waiting deliveries below which more are loaded from the store. */
const REFILL_BELOW = 20;

/**
 * Bounds the deliveries that wait in memory for one webhook or destination. Without the bound, one that does not answer
 * could fill the memory, and deliveries to others would not be loaded.
 */
export class WaitingBound {
  readonly #waitingFor: (name: string) => number;
  /** Limits whose further deliveries stay in the store until they are loaded again, in order. */
  readonly #exceeded = new Set<string>();

  constructor(waitingFor: (name: string) => number) {
    this.#waitingFor = waitingFor;
  }

  /** Returns whether a delivery with this limit must stay in the store. */
  keepsOut(name: string | undefined): boolean {
    if (name === undefined) return false;
    if (!this.#exceeded.has(name) && this.#waitingFor(name) < MAX_WAITING) return false;
    this.#exceeded.add(name);
    return true;
  }

  /** Returns true if deliveries that stayed in the store must be loaded now. */
  drained(name: string | undefined): boolean {
    return name !== undefined && this.#waitingFor(name) < REFILL_BELOW && this.#exceeded.delete(name);
  }

  /** Forgets all limits. The caller must load the deliveries from the store again. */
  clear(): void {
    this.#exceeded.clear();
  }
}

/** Returns the concurrency limit of a delivery, or undefined if it has none. */
export function limitOf({ delivery, target: { webhook } }: Pick<QueuedDelivery, 'delivery' | 'target'>) {
  if (webhook.concurrency === undefined) return undefined;
  return { name: endpointName(delivery), limit: webhook.concurrency };
}
