/** Functions that determine how a queue orders and limits its items. */
export interface QueueRules<Item> {
  bytesOf(item: Item): number;
  /**
   * Returns the concurrency limit of an item, or undefined for an unlimited item. Items with the same `name` share a
   * limit.
   */
  limitOf(item: Item): { name: string; limit: number } | undefined;
  /** Returns the order key of an item. Items with the same order key run one after another. */
  orderOf(item: Item): string | undefined;
}

/** State of one concurrency limit, with the number of running items and the items that wait for a slot. */
interface Limited<Item> {
  running: number;
  waiting: Item[];
}

/**
 * FIFO queue with concurrency limits and order keys. Blocked items are in separate lists, so that the next runnable
 * item is found in O(1) time.
 */
export class Queue<Item> {
  readonly #rules: QueueRules<Item>;
  readonly #ready: Item[] = [];
  readonly #limited = new Map<string, Limited<Item>>();
  /** Maps an order key to the items that wait for an earlier item with that key. */
  readonly #orders = new Map<string, Item[]>();
  #size = 0;
  #bytes = 0;

  constructor(rules: QueueRules<Item>) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns the number of items that wait for a slot of the concurrency limit with this name. */
  waitingFor(name: string): number {
    return this.#limited.get(name)?.waiting.length ?? 0;
  }

  push(item: Item): void {
    this.#count(item, 1);
    if (this.#enterOrder(item)) this.#toReady(item);
  }

  /**
   * Reserves the item's position among items with the same order key. If the result is true, the caller must start the
   * item with `release`. If the result is false, the item waits in the queue for an earlier item.
   */
  reserve(item: Item): boolean {
    if (this.#enterOrder(item)) return true;
    this.#count(item, 1);
    return false;
  }

  /**
   * Makes a reserved item ready to run. Also used for a failed item whose next attempt is due. The order key of a
   * failed item stays blocked until that attempt ends.
   */
  release(item: Item): void {
    this.#count(item, 1);
    this.#toReady(item);
  }

  /**
   * Removes and returns the next runnable item. The item occupies its slot and blocks its order key until `done` is
   * called.
   */
  take(): Item | undefined {
    const item = this.#ready.shift();
    if (item !== undefined) this.#count(item, -1);
    return item;
  }

  /**
   * Frees the slot of an item that has ended. With `keepsOrder`, the order key stays blocked until the next attempt of
   * the item.
   */
  done(item: Item, { keepsOrder } = { keepsOrder: false }): void {
    this.#freeSlot(item);
    if (!keepsOrder) this.#leaveOrder(item);
  }

  /**
   * Removes an item that `take` returned, together with all items that wait for its order key. Returns the removed
   * items.
   */
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

  /**
   * Returns true if no earlier item has the same order key. Otherwise queues the item behind the earlier items and
   * returns false.
   */
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
