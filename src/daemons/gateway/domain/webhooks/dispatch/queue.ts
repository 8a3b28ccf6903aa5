/** How a queue orders and limits its items. */
export interface QueueRules<Item> {
  bytesOf(item: Item): number;
  /** Items of the same name share a concurrency limit; undefined: no limit. */
  limitOf(item: Item): { name: string; limit: number } | undefined;
  /** Items with the same order key run one after another. */
  orderOf(item: Item): string | undefined;
}

/** Running items of one concurrency limit, and those that wait for a slot. */
interface Limited<Item> {
  running: number;
  waiting: Item[];
}

/**
 * FIFO queue with concurrency limits and order keys. Blocked items wait in lists of their own, so that
 * taking the next runnable item is O(1).
 */
export class Queue<Item> {
  readonly #rules: QueueRules<Item>;
  readonly #ready: Item[] = [];
  readonly #limited = new Map<string, Limited<Item>>();
  /** Items that wait behind the running one, by order key. */
  readonly #orders = new Map<string, Item[]>();
  #size = 0;
  #bytes = 0;

  constructor(rules: QueueRules<Item>) {
    this.#rules = rules;
  }

  /** Number of waiting items. */
  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(item: Item): void {
    this.#count(item, 1);
    if (this.#enterOrder(item)) this.#toReady(item);
  }

  /**
   * Reserves the item's position in its order, to run at `release`. Returns false if the order is busy: the
   * item then waits as if pushed.
   */
  reserve(item: Item): boolean {
    if (this.#enterOrder(item)) return true;
    this.#count(item, 1);
    return false;
  }

  /** Makes a reserved item, or a failed one that keeps its order, ready to run. */
  release(item: Item): void {
    this.#count(item, 1);
    this.#toReady(item);
  }

  /** Returns the next runnable item. It occupies its slot and its order until `done`. */
  take(): Item | undefined {
    const item = this.#ready.shift();
    if (item !== undefined) this.#count(item, -1);
    return item;
  }

  /** Ends an item; `keepsOrder` blocks its successors until its next attempt. */
  done(item: Item, { keepsOrder } = { keepsOrder: false }): void {
    this.#freeSlot(item);
    if (!keepsOrder) this.#leaveOrder(item);
  }

  /** Removes a taken item and its successors in the same order; returns all of them. */
  drop(item: Item): Item[] {
    this.#freeSlot(item);
    const order = this.#rules.orderOf(item);
    const behind = order === undefined ? [] : (this.#orders.get(order) ?? []);
    if (order !== undefined) this.#orders.delete(order);
    for (const each of behind) this.#count(each, -1);
    return [item, ...behind];
  }

  #toReady(item: Item): void {
    const rule = this.#rules.limitOf(item);
    if (rule) {
      const limited = this.#limited.get(rule.name) ?? { running: 0, waiting: [] };
      this.#limited.set(rule.name, limited);
      if (limited.running >= rule.limit) {
        limited.waiting.push(item);
        return;
      }
      limited.running++;
    }
    this.#ready.push(item);
  }

  #freeSlot(item: Item): void {
    const rule = this.#rules.limitOf(item);
    const limited = rule && this.#limited.get(rule.name);
    if (!rule || !limited) return;
    limited.running--;
    const next = limited.waiting.shift();
    if (next !== undefined) {
      limited.running++;
      this.#ready.push(next);
    } else if (limited.running === 0) this.#limited.delete(rule.name);
  }

  /** Returns false if the order is busy; the item then waits in it. */
  #enterOrder(item: Item): boolean {
    const order = this.#rules.orderOf(item);
    if (order === undefined) return true;
    const behind = this.#orders.get(order);
    if (behind) behind.push(item);
    else this.#orders.set(order, []);
    return behind === undefined;
  }

  #leaveOrder(item: Item): void {
    const order = this.#rules.orderOf(item);
    const behind = order === undefined ? undefined : this.#orders.get(order);
    if (order === undefined || !behind) return;
    const next = behind.shift();
    if (next === undefined) this.#orders.delete(order);
    else this.#toReady(next);
  }

  #count(item: Item, sign: 1 | -1): void {
    this.#size += sign;
    this.#bytes += sign * this.#rules.bytesOf(item);
  }
}
