import type { StepKey } from '../run/state.ts';
import type { FairSlots } from './fair-slots.ts';

type Owner = StepKey | 'replay';

/** Concurrency slots that a run holds or has requested. */
export class RunSlots {
  readonly #slots: FairSlots;
  readonly #tenantId: string;
  readonly #granted: (owner: Owner) => void;
  readonly #held = new Set<Owner>();
  readonly #requests = new Map<Owner, () => void>();

  constructor(slots: FairSlots, tenantId: string, granted: (owner: Owner) => void) {
    this.#slots = slots;
    this.#tenantId = tenantId;
    this.#granted = granted;
  }

  get available(): number {
    return this.#slots.available(this.#tenantId);
  }

  /** Takes a slot that was free when the state transition was computed. */
  take(owner: Owner): void {
    if (!this.#slots.tryTake(this.#tenantId)) throw new Error('An offered slot was taken by another run.');
    this.#held.add(owner);
  }

  request(owner: Owner): void {
    const withdraw = this.#slots.ask(this.#tenantId, () => {
      this.#requests.delete(owner);
      this.#held.add(owner);
      this.#granted(owner);
    });
    this.#requests.set(owner, withdraw);
    // Slots might have become free since the state transition was computed, so queued requests are granted now.
    this.#slots.grant();
  }

  /** Releases the owner's slot, or withdraws the owner's request for a slot. */
  release(owner: Owner): void {
    this.#requests.get(owner)?.();
    this.#requests.delete(owner);
    if (this.#held.delete(owner)) this.#slots.release(this.#tenantId);
  }

  /**
   * Withdraws all requests and releases all slots, except slots of work in flight. Such a slot is released when the
   * work settles.
   */
  close(isInFlight: (owner: Owner) => boolean): void {
    for (const owner of [...this.#requests.keys()]) this.release(owner);
    for (const owner of [...this.#held]) if (!isInFlight(owner)) this.release(owner);
  }
}
