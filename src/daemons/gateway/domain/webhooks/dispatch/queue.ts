/** How a queue orders and limits its items. */
export interface QueueRules<Item> {
  bytesOf(item: Item): number;
  /** Items of one lane count against its concurrency limit; undefined: no limit. */
  laneOf(item: Item): { name: string; limit: number } | undefined;
  /** Items of one order run one after another. */
  orderOf(item: Item): string | undefined;
}

export interface Queue<Item> {
  /** Adds an item. */
  push(item: Item): void;
  /**
   * Reserves the item's position in its order, to run at `release`. Returns false if the order is busy: the
   * item then waits as if pushed.
   */
  reserve(item: Item): boolean;
  /** Makes a reserved item, or a failed one that keeps its order, ready to run. */
  release(item: Item): void;
  /** Returns the next runnable item. Its lane and order are busy until `done`. */
  take(): Item | undefined;
  /** Ends an item; `keepsOrder` blocks its successors until its next attempt. */
  done(item: Item, options?: { keepsOrder: boolean }): void;
  /** Removes a taken item and its successors in the same order; returns all of them. */
  drop(item: Item): Item[];
  /** Number of waiting items. */
  readonly size: number;
  readonly bytes: number;
}

/** FIFO queue. Items of full lanes and busy orders wait separately, so that taking the next one is O(1). */
export function createQueue<Item>({ bytesOf, laneOf, orderOf }: QueueRules<Item>): Queue<Item> {
  const ready: Item[] = [];
  const lanes = new Map<string, { running: number; blocked: Item[] }>();
  const orders = new Map<string, Item[]>();
  let size = 0;
  let bytes = 0;

  function toReady(item: Item): void {
    const rule = laneOf(item);
    if (rule) {
      const lane = lanes.get(rule.name) ?? { running: 0, blocked: [] };
      lanes.set(rule.name, lane);
      if (lane.running >= rule.limit) {
        lane.blocked.push(item);
        return;
      }
      lane.running++;
    }
    ready.push(item);
  }

  function leaveLane(item: Item): void {
    const rule = laneOf(item);
    const lane = rule && lanes.get(rule.name);
    if (!rule || !lane) return;
    lane.running--;
    const next = lane.blocked.shift();
    if (next !== undefined) {
      lane.running++;
      ready.push(next);
    } else if (lane.running === 0) lanes.delete(rule.name);
  }

  /** Returns false if the order is busy; the item then waits in it. */
  function enterOrder(item: Item): boolean {
    const order = orderOf(item);
    if (order === undefined) return true;
    const behind = orders.get(order);
    if (behind) behind.push(item);
    else orders.set(order, []);
    return behind === undefined;
  }

  function leaveOrder(item: Item): void {
    const order = orderOf(item);
    const behind = order === undefined ? undefined : orders.get(order);
    if (order === undefined || !behind) return;
    const next = behind.shift();
    if (next === undefined) orders.delete(order);
    else toReady(next);
  }

  function count(item: Item, sign: 1 | -1): void {
    size += sign;
    bytes += sign * bytesOf(item);
  }

  return {
    push(item) {
      count(item, 1);
      if (enterOrder(item)) toReady(item);
    },
    reserve(item) {
      if (enterOrder(item)) return true;
      count(item, 1);
      return false;
    },
    release(item) {
      count(item, 1);
      toReady(item);
    },
    take() {
      const item = ready.shift();
      if (item !== undefined) count(item, -1);
      return item;
    },
    done(item, { keepsOrder } = { keepsOrder: false }) {
      leaveLane(item);
      if (!keepsOrder) leaveOrder(item);
    },
    drop(item) {
      leaveLane(item);
      const order = orderOf(item);
      const behind = order === undefined ? [] : (orders.get(order) ?? []);
      if (order !== undefined) orders.delete(order);
      for (const each of behind) count(each, -1);
      return [item, ...behind];
    },
    get size() {
      return size;
    },
    get bytes() {
      return bytes;
    },
  };
}
