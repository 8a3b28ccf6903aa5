/** Identifies a queue. A queue exists as soon as it has an item or settings. */
export interface QueueKey {
  namespaceId: string;
  queue: string;
}

/**
 * Status of an item. Delayed items, and items behind an earlier one of their order key, count as `waiting`. @spec
 * docs/queues.md
 */
export type QueueItemStatus = 'waiting' | 'leased' | 'dead' | 'acked';

/** An item to add. */
export interface NewQueueItem extends QueueKey {
  /** A second item with the id of an existing one is ignored, until the acked item is pruned. At most 256 characters. */
  id: string;
  /** Delivery that the item comes from, or null for an item that a client added. */
  deliveryId: string | null;
  /** Headers as a JSON array of `[name, value]`, in the order of the request. */
  headers: string;
  body: Uint8Array;
  /** Items with the same order key are leased one at a time, in the order of their addition. */
  orderKey: string | null;
  /** Epoch ms. */
  receivedAt: number;
  /** Time from now until the item can be leased. */
  delayMs?: number;
}

/** An item without its content. Times are in epoch ms of the store's clock. */
export interface QueueItemRecord extends Omit<NewQueueItem, 'headers' | 'body' | 'delayMs'> {
  /** Number of the item in the order of addition, over all queues. */
  position: number;
  status: QueueItemStatus;
  /** Number of leases since the item was added or retried. */
  attempt: number;
  /** Start of the next possible lease of a delayed item. */
  availableAt: number | null;
  leasedUntil: number | null;
  /** Time of the acknowledgement or of the last failure. */
  endedAt: number | null;
  lastError: string | null;
  bodyBytes: number;
}

/** Content of an item. Acked items have none. */
export interface QueueItemContent {
  headers: string;
  body: Uint8Array;
}

export interface LeasedItem extends QueueItemContent {
  leaseId: string;
  id: string;
  deliveryId: string | null;
  orderKey: string | null;
  attempt: number;
  receivedAt: number;
  leasedUntil: number;
}

/** Limits of a queue that changes of its items depend on. */
export interface QueueLimits {
  /** Number of leases after which a failed item becomes dead. */
  maxAttempts: number;
  /** Maximum number of leased items, or null without a limit. */
  concurrency: number | null;
}

export interface LeaseRequest extends QueueKey, QueueLimits {
  max: number;
  /** The last item is the one with which the bodies reach this size. */
  maxBytes: number;
  leaseMs: number;
  /** Random text of the lease ids. Must differ for each request. */
  token: string;
}

/** What the holder of a lease asks for. Without `delayMs`, the delay grows with the number of attempts. */
export type LeaseChange =
  | { kind: 'ack' }
  | { kind: 'nack'; delayMs: number | null; error: string | null }
  | { kind: 'extend'; leaseMs: number };

/** Result of a change. `lost`: the lease has ended, or the item was given out again, retried or deleted. */
export type LeaseOutcome = 'acked' | 'waiting' | 'dead' | 'extended' | 'lost';

export interface LeaseResult {
  outcome: LeaseOutcome;
  /** New end of an extended lease, or the time from which a returned item can be leased. */
  until: number | null;
}

export interface QueueCounts {
  waiting: number;
  leased: number;
  dead: number;
  /** Time at which the oldest waiting item was received. */
  oldestReceivedAt: number | null;
}

/** Bytes that count for each item in addition to its headers and body. */
export const QUEUE_ITEM_BYTES = 256;

export interface QueueUsage {
  queues: number;
  /** Headers and bodies of the items, and `QUEUE_ITEM_BYTES` for each item. */
  bytes: number;
}

export type QueueCountsOf = QueueKey & QueueCounts;

/** A place in a list of items. The list orders by state, then by due time. */
export interface QueueCursor {
  state: number;
  dueAt: number;
  position: number;
}

export interface QueueItemFilter {
  /** Default: all. */
  status?: QueueItemStatus | undefined;
  after?: QueueCursor | undefined;
  limit: number;
}

export interface QueueItemPage {
  items: QueueItemRecord[];
  next: QueueCursor | null;
}

/** Settings of a queue as JSON, which the gateway defines. */
export interface QueueSettingsRecord extends QueueKey {
  settings: string;
}

/** Queues of deliveries that programs lease. A change is durable when its promise resolves. @spec docs/queues.md */
export interface QueueStore {
  /** Adds an item. Returns false if the queue already has an item with this id. */
  put(item: NewQueueItem): Promise<boolean>;
  /**
   * Leases the oldest items that are due. No item is given out while another lease of it lasts. Expired leases of the
   * queue end first: their items wait again, or become dead after `maxAttempts`.
   */
  lease(request: LeaseRequest): Promise<LeasedItem[]>;
  /** Changes leased items. Returns one result for each lease id. An ack can be repeated. */
  settle(
    key: QueueKey,
    leaseIds: readonly string[],
    change: LeaseChange,
    limits: QueueLimits,
  ): Promise<LeaseResult[]>;
  /** Returns the queues that have an item to lease or an expired lease. */
  due(keys: readonly QueueKey[]): Promise<QueueKey[]>;
  /** Ends expired leases of a queue. Returns the number of ended leases. */
  expire(key: QueueKey, limits: QueueLimits): Promise<number>;

  /** Returns the counts of all queues, or of those of a namespace, ordered by namespace and name. */
  counts(namespaceId?: string): Promise<QueueCountsOf[]>;
  /** Returns the counts of a queue, or undefined if the queue never had an item. */
  count(key: QueueKey): Promise<QueueCounts | undefined>;
  /** Returns the size of all queues of a namespace. Acked items do not count. */
  usage(namespaceId: string): Promise<QueueUsage>;
  list(key: QueueKey, filter: QueueItemFilter): Promise<QueueItemPage>;
  find(key: QueueKey, id: string): Promise<(QueueItemRecord & Partial<QueueItemContent>) | undefined>;

  /** Returns the time at which the newest dead item ended, or 0. */
  lastDeadAt(key: QueueKey): Promise<number>;
  /** Makes dead items wait again, with no attempts made. Returns the ids of the changed items. */
  retry(key: QueueKey, ids: readonly string[]): Promise<string[]>;
  /** Deletes items that are not leased. Returns the ids of the deleted items. */
  remove(key: QueueKey, ids: readonly string[]): Promise<string[]>;
  /** Deletes at most `limit` items with this status. Returns the number of deleted items. */
  purge(key: QueueKey, status: 'waiting' | 'dead', limit: number): Promise<number>;
  /** Deletes acked items that ended before `ackedBefore`, and dead ones that ended before `deadBefore`. */
  prune(before: { ackedBefore: number; deadBefore: number; limit: number }): Promise<number>;

  settings(): Promise<QueueSettingsRecord[]>;
  /** Replaces the settings of a queue. Null removes them. */
  configure(key: QueueKey, settings: string | null): Promise<void>;
}
