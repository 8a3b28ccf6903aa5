/** What waits, and what it waits for. */
export interface QueueRules<Item> {
  bytesOf(item: Item): number;
  /** Items of one lane count against the lane's limit; undefined: no limit. */
  laneOf(item: Item): { name: string; limit: number } | undefined;
  /** Items of one order run one after the other. */
  orderOf(item: Item): string | undefined;
}

export interface Queue<Item> {
  /** Takes an item in. */
  push(item: Item): void;
  /** Takes the item's place in its order, to run at `release`. False when the place is taken: then it waits as if pushed. */
  reserve(item: Item): boolean;
  /** An item that was reserved, or failed and keeps its order, may run now. */
  release(item: Item): void;
  /** The next that may run. Its lane and order are taken until `done`. */
  take(): Item | undefined;
  /** It ended; `keepsOrder` leaves its successors waiting, for another attempt. */
  done(item: Item, options?: { keepsOrder: boolean }): void;
  /** It was taken and is not to run, nor what stands behind it in its order: gives all of them up and tells which. */
  drop(item: Item): Item[];
  /** Items held, running ones not counted. */
  readonly size: number;
  readonly bytes: number;
}

/** First come, first served, but for lanes that are full and orders that are taken: those wait aside, so that finding the next costs nothing. */
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

  /** False when another is before it: then it stands behind that one. */
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
