import { createHash } from 'node:crypto';
import type { Queue, QueueSettingsInput } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  LeaseChange,
  LeasedItem,
  LeaseResult,
  NewQueueItem,
  QueueCounts,
  QueueKey,
  QueueLimits,
  QueueStore,
} from '../../../../store/ports/index.ts';
import type { CountQueueEvent } from '../../queue-metrics.ts';
import type { QueueRoom } from './queue-room.ts';
import type { QueueSettingsCache } from './queue-settings.ts';
import type { QueueWaits } from './queue-waits.ts';

export interface QueuesDeps {
  store: QueueStore;
  settings: QueueSettingsCache;
  waits: QueueWaits;
  room: Pick<QueueRoom, 'require'>;
  count: CountQueueEvent;
  clock: Clock;
  random: Random;
}

export interface Lease {
  max: number;
  leaseMs?: number | undefined;
  waitMs: number;
}

/** Limit of the bodies of one answer. A larger single body is given out alone. */
const MAX_LEASE_BYTES = 8 * 1024 * 1024;
/** Order key of all items of a queue whose items are leased one at a time. */
const WHOLE_QUEUE = '';
const TOKEN_BYTES = 12;
const MAX_ORDER_KEY_CHARS = 256;
const NO_COUNTS: QueueCounts = { waiting: 0, leased: 0, dead: 0, oldestReceivedAt: null };

/** Puts, leases and ends of leases. @spec docs/queues.md */
export class Queues {
  readonly #deps: QueuesDeps;

  constructor(deps: QueuesDeps) {
    this.#deps = deps;
  }

  /**
   * Adds an item, and wakes a lease call. Returns false if the queue already has an item with this id. Throws
   * SERVICE_UNAVAILABLE if the queues of the namespace are full.
   */
  async put(item: NewQueueItem): Promise<boolean> {
    const { store, settings, waits, count, room } = this.#deps;
    await room.require(item);
    const { order } = settings.of(item);
    const orderKey = order === 'queue' ? WHOLE_QUEUE : order === 'none' ? null : boundedKey(item.orderKey);
    const isNew = await store.put({ ...item, orderKey });
    if (isNew) count(item.queue, 'put', 1);
    waits.wake(item);
    return isNew;
  }

  /** Leases items. Throws VALIDATION_ERROR for a lease that is longer than the queue allows. */
  async lease(
    key: QueueKey,
    { max, leaseMs: asked, waitMs }: Lease,
    disconnected: AbortSignal,
  ): Promise<LeasedItem[]> {
    const { store, waits, count, random } = this.#deps;
    const leaseMs = this.#leaseMsOf(key, asked);
    const take = () =>
      store.lease({
        ...key,
        ...this.#limitsOf(key),
        ...{ max, maxBytes: MAX_LEASE_BYTES, leaseMs, token: random.secret(TOKEN_BYTES) },
      });
    const items = await (waitMs === 0 ? take() : waits.until(key, { waitMs, disconnected }, take));
    if (items.length > 0) {
      count(key.queue, 'leased', items.length);
      // One wake-up can stand for several items.
      if (items.length === max) waits.wake(key);
    }
    if (!disconnected.aborted) return items;
    await this.#giveBack(key, items);
    return [];
  }

  async ack(key: QueueKey, leaseIds: readonly string[]) {
    const results = await this.#settle(key, leaseIds, { kind: 'ack' });
    return results.map(({ leaseId, outcome }) => ({
      leaseId,
      status: outcome === 'acked' ? outcome : null,
      error: errorOf(outcome),
    }));
  }

  async nack(
    key: QueueKey,
    leaseIds: readonly string[],
    { delayMs = null, error = null }: { delayMs?: number | null; error?: string | null },
  ) {
    const results = await this.#settle(key, leaseIds, { kind: 'nack', delayMs, error });
    return results.map(({ leaseId, outcome, until }) => ({
      leaseId,
      status: outcome === 'waiting' || outcome === 'dead' ? outcome : null,
      availableAt: until,
      error: errorOf(outcome),
    }));
  }

  async extend(key: QueueKey, leaseIds: readonly string[], asked: number | undefined) {
    const leaseMs = this.#leaseMsOf(key, asked);
    const results = await this.#settle(key, leaseIds, { kind: 'extend', leaseMs });
    return results.map(({ leaseId, outcome, until }) => ({
      leaseId,
      status: outcome === 'extended' ? ('leased' as const) : null,
      leasedUntil: until,
      error: errorOf(outcome),
    }));
  }

  async list(namespaceId: string): Promise<Queue[]> {
    const { store, settings } = this.#deps;
    const counted = new Map((await store.counts(namespaceId)).map((counts) => [counts.queue, counts]));
    const names = new Set([...counted.keys(), ...settings.names(namespaceId)]);
    return [...names].sort().map((queue) => this.#viewOf({ namespaceId, queue }, counted.get(queue)));
  }

  /** Returns a queue. Throws NOT_FOUND for a queue without items and settings. */
  async get(key: QueueKey): Promise<Queue> {
    const { store, settings } = this.#deps;
    await this.endLeases(key);
    const counts = await store.count(key);
    if (!counts && settings.sourceOf(key) === 'default')
      throw new PlatformError(
        'NOT_FOUND',
        `There is no queue "${key.queue}"; list all with \`svc queues list\`.`,
      );
    return this.#viewOf(key, counts);
  }

  async configure(key: QueueKey, settings: QueueSettingsInput): Promise<Queue> {
    await this.#deps.settings.configure(key, settings);
    return this.#viewOf(key, await this.#deps.store.count(key));
  }

  /** Ends expired leases, so that lists and counts show their items as waiting or dead. */
  async endLeases(key: QueueKey): Promise<void> {
    await this.#deps.store.expire(key, this.#limitsOf(key));
  }

  #viewOf(key: QueueKey, { oldestReceivedAt, waiting, leased, dead } = NO_COUNTS): Queue {
    const { settings, clock } = this.#deps;
    const oldestAgeMs = oldestReceivedAt === null ? null : Math.max(0, clock.now() - oldestReceivedAt);
    return {
      name: key.queue,
      ...{ waiting, leased, dead, oldestAgeMs },
      settings: settings.of(key),
      settingsFrom: settings.sourceOf(key),
    };
  }

  #limitsOf(key: QueueKey): QueueLimits {
    const { maxAttempts, concurrency } = this.#deps.settings.of(key);
    return { maxAttempts, concurrency };
  }

  #leaseMsOf(key: QueueKey, asked: number | undefined): number {
    const { leaseMs, maxLeaseMs } = this.#deps.settings.of(key);
    if (asked === undefined) return Math.min(leaseMs, maxLeaseMs);
    if (asked <= maxLeaseMs) return asked;
    throw new PlatformError(
      'VALIDATION_ERROR',
      `body.leaseMs: the queue "${key.queue}" allows at most ${maxLeaseMs} ms (its setting "maxLeaseMs"). Extend the lease while the item is handled.`,
      { details: { maxLeaseMs } },
    );
  }

  async #settle(key: QueueKey, leaseIds: readonly string[], change: LeaseChange) {
    const { store, waits, count } = this.#deps;
    const unique = [...new Set(leaseIds)];
    const results = await store.settle(key, unique, change, this.#limitsOf(key));
    for (const [outcome, ofOutcome] of Map.groupBy(results, (result) => result.outcome)) {
      count(key.queue, outcome, ofOutcome.length);
      // The end of a lease can make the next item of its order key ready, and makes room for another lease.
      if (outcome !== 'extended' && outcome !== 'lost') waits.wake(key);
    }
    return results.map((result: LeaseResult, index) => ({ leaseId: unique[index]!, ...result }));
  }

  /** Makes items available again whose client disconnected before the answer. */
  async #giveBack(key: QueueKey, items: readonly LeasedItem[]): Promise<void> {
    if (items.length === 0) return;
    const error = 'The client disconnected before it received the item.';
    await this.nack(
      key,
      items.map(({ leaseId }) => leaseId),
      { delayMs: 0, error },
    );
  }
}

/** Replaces a long order key, which a sender chooses, by its digest. PostgreSQL cannot index a key of 2.7 kB. */
function boundedKey(key: string | null): string | null {
  if (key === null || key.length <= MAX_ORDER_KEY_CHARS) return key;
  return `sha256:${createHash('sha256').update(key).digest('base64url')}`;
}

function errorOf(outcome: LeaseResult['outcome']): { code: 'LEASE_LOST'; message: string } | null {
  if (outcome !== 'lost') return null;
  return {
    code: 'LEASE_LOST',
    message: 'The lease ended, or is unknown. The item may have been given to another program.',
  };
}
