import type { LeaseChange, QueueLimits } from '../../../src/store/ports/index.ts';
import { expire, isOpen, type LeaseState, QUEUE_STATE, settle } from '../../../src/store/queue-rules.ts';

export interface ModelItem extends LeaseState {
  id: string;
  orderKey: string | null;
}

/** A queue in memory, made of the pure rules of leases. The stores must behave alike. */
export class QueueModel {
  readonly #limits: QueueLimits;
  items: ModelItem[] = [];

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  put(id: string, orderKey: string | null, delayMs: number, now: number): boolean {
    if (this.items.some((item) => item.id === id)) return false;
    const state =
      orderKey === null ? (delayMs > 0 ? QUEUE_STATE.delayed : QUEUE_STATE.ready) : QUEUE_STATE.blocked;
    const dueAt = delayMs > 0 ? now + delayMs : 0;
    this.items.push({ id, orderKey, state, dueAt, attempt: 0, token: null, lastError: null });
    this.#unblock(now);
    return true;
  }

  lease(max: number, leaseMs: number, token: string, now: number): ModelItem[] {
    this.expire(now);
    for (const item of this.items)
      if (item.state === QUEUE_STATE.delayed && item.dueAt <= now)
        Object.assign(item, { state: QUEUE_STATE.ready, dueAt: 0 });
    const leased = this.items.filter(({ state }) => state === QUEUE_STATE.leased).length;
    const room = Math.min(max, (this.#limits.concurrency ?? Infinity) - leased);
    const given = this.items.filter(({ state }) => state === QUEUE_STATE.ready).slice(0, Math.max(0, room));
    for (const item of given)
      Object.assign(item, {
        state: QUEUE_STATE.leased,
        dueAt: now + leaseMs,
        attempt: item.attempt + 1,
        token,
      });
    return given;
  }

  settle(id: string, token: string, change: LeaseChange, now: number) {
    const item = this.items.find((each) => each.id === id);
    if (!item) return { outcome: 'lost', until: null };
    const { outcome, until, next } = settle(item, token, change, {
      now,
      maxAttempts: this.#limits.maxAttempts,
    });
    Object.assign(item, next);
    this.#unblock(now);
    return { outcome, until };
  }

  expire(now: number): number {
    let ended = 0;
    for (const item of this.items) {
      const next = expire(item, now, this.#limits);
      if (next) ended++;
      Object.assign(item, next);
    }
    this.#unblock(now);
    return ended;
  }

  retry(id: string, now: number): boolean {
    const item = this.items.find((each) => each.id === id && each.state === QUEUE_STATE.dead);
    if (!item) return false;
    const state = item.orderKey === null ? QUEUE_STATE.ready : QUEUE_STATE.blocked;
    Object.assign(item, { state, dueAt: 0, attempt: 0, token: null });
    this.#unblock(now);
    return true;
  }

  remove(id: string, now: number): boolean {
    const index = this.items.findIndex((item) => item.id === id && item.state !== QUEUE_STATE.leased);
    if (index === -1) return false;
    this.items.splice(index, 1);
    this.#unblock(now);
    return true;
  }

  /** Exactly one open item of each order key is not blocked. */
  #unblock(now: number): void {
    for (const [key, items] of Map.groupBy(this.items.filter(isOpen), (item) => item.orderKey)) {
      if (key === null || items.some(({ state }) => state !== QUEUE_STATE.blocked)) continue;
      const [first] = items;
      const isDelayed = first!.dueAt > now;
      Object.assign(
        first!,
        isDelayed ? { state: QUEUE_STATE.delayed } : { state: QUEUE_STATE.ready, dueAt: 0 },
      );
    }
  }
}
