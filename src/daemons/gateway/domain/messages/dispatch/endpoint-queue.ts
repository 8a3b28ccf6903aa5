import type { DueDelivery, StoredEndpoint } from '../../../../../store/ports/index.ts';
import { TokenBucket } from './token-bucket.ts';

/** Attempts in flight at an endpoint that answers. */
export const MAX_CONCURRENCY = 16;
/** Deliveries of an endpoint in memory. The others stay in the store. */
export const MAX_HELD = 256;

/** What an endpoint can do next. `wait`: until a retry or the rate limit allows an attempt. */
export type NextStep =
  | { kind: 'start'; delivery: DueDelivery }
  | { kind: 'load' }
  | { kind: 'wait'; ms: number }
  | { kind: 'idle' };

const IDLE: NextStep = { kind: 'idle' };
const LOAD: NextStep = { kind: 'load' };

/**
 * State of one endpoint: its deliveries in memory, and whether the store has more. Decides what to attempt next; does no
 * I/O. An endpoint starts with one attempt at a time. Each success doubles the limit, and a failure resets it.
 */
export class EndpointQueue {
  readonly id: string;
  #isOrdered = false;
  #maxConcurrency = MAX_CONCURRENCY;
  #bucket: TokenBucket | undefined;
  #rate: number | null = null;

  #waiting: DueDelivery[] = [];
  #retries: DueDelivery[] = [];
  /** Messages that are held, in flight, or whose end is not stored yet. The store must not give them again. */
  readonly #known = new Set<string>();
  #inFlight = 0;
  #concurrency = 1;
  #hasSucceeded = false;
  /** Attempts that have ended, but whose end is not stored. */
  #unstored = 0;
  #hasMore = false;
  #hasGrown = false;
  #isLoading = false;
  /** Messages whose end was stored during the load. The load may have read them before. */
  readonly #storedInLoad = new Set<string>();
  #retryDueAt: number | null = null;
  failingSince: number | null = null;

  constructor(id: string) {
    this.id = id;
  }

  configure({ ordered, rateLimitPerSecond }: StoredEndpoint, now: number): void {
    this.#isOrdered = ordered;
    this.#maxConcurrency = ordered ? 1 : MAX_CONCURRENCY;
    this.#concurrency = Math.min(this.#concurrency, this.#maxConcurrency);
    if (rateLimitPerSecond === this.#rate) return;
    this.#rate = rateLimitPerSecond;
    this.#bucket = rateLimitPerSecond === null ? undefined : new TokenBucket(rateLimitPerSecond, now);
  }

  get isOrdered(): boolean {
    return this.#isOrdered;
  }

  /** Whether the last attempt succeeded. Slots are reserved for such endpoints. */
  get isProven(): boolean {
    return this.#hasSucceeded;
  }

  /** Whether nothing is left to remember. */
  get isEmpty(): boolean {
    return this.#known.size === 0 && !this.#hasMore && !this.#isLoading && this.#retryDueAt === null;
  }

  get knownCount(): number {
    return this.#known.size;
  }

  /** Adds a stored delivery. It stays in the store if the memory is full, or if older ones are there. */
  push(delivery: DueDelivery): void {
    if (this.#hasMore || this.#waiting.length >= MAX_HELD) {
      this.#hasMore = true;
      this.#hasGrown = this.#isLoading;
      return;
    }
    this.#known.add(delivery.messageId);
    this.#waiting.push(delivery);
  }

  /** Notes that the store has deliveries that are not held. */
  noteStored({ waiting, retryAt }: { waiting: boolean; retryAt: number | null }): void {
    if (waiting) {
      this.#hasMore = true;
      this.#hasGrown = this.#isLoading;
    }
    if (retryAt !== null) this.#retryDueAt = Math.min(this.#retryDueAt ?? retryAt, retryAt);
  }

  next(now: number): NextStep {
    if (this.#inFlight >= this.#concurrency) return IDLE;
    // After a crash, the unstored message is repeated. A later one must not have been sent before.
    if (this.#isOrdered && this.#unstored > 0) return IDLE;
    const isRetryDue = this.#retryDueAt !== null && this.#retryDueAt <= now;
    if (isRetryDue && this.#retries.length === 0) return this.#isLoading ? IDLE : LOAD;
    // The first message of an ordered endpoint blocks the others until it is done.
    const isBlocked = this.#isOrdered && this.#retries.length === 0 && this.#retryDueAt !== null;
    const delivery = this.#retries[0] ?? (isBlocked ? undefined : this.#waiting[0]);
    if (!delivery) return this.#withoutDelivery(now, isBlocked);
    const waitMs = this.#bucket?.waitMs(now) ?? 0;
    return waitMs > 0 ? { kind: 'wait', ms: waitMs } : { kind: 'start', delivery };
  }

  #withoutDelivery(now: number, isBlocked: boolean): NextStep {
    const mustFinish = this.#isOrdered && this.#known.size > 0;
    if (this.#hasMore && !isBlocked && !mustFinish) return this.#isLoading ? IDLE : LOAD;
    return this.#retryDueAt === null ? IDLE : { kind: 'wait', ms: Math.max(1, this.#retryDueAt - now) };
  }

  /** Takes the delivery that `next` returned. */
  start(now: number): void {
    const taken = this.#retries.shift() ?? this.#waiting.shift();
    if (!taken) throw new Error('There is no delivery to start.');
    this.#bucket?.take(now);
    this.#inFlight++;
  }

  /** Returns the size of the load that is due, and notes that it runs. */
  beginLoad(now: number): { retries: boolean; limit: number } {
    this.#isLoading = true;
    this.#hasGrown = false;
    this.#storedInLoad.clear();
    const retries = this.#retryDueAt !== null && this.#retryDueAt <= now;
    return { retries, limit: MAX_HELD + this.#known.size };
  }

  loadedWaiting(found: readonly DueDelivery[], limit: number): void {
    this.#isLoading = false;
    this.#hasMore = found.length >= limit || this.#hasGrown;
    for (const delivery of found) {
      if (this.#isOutdated(delivery)) continue;
      this.#known.add(delivery.messageId);
      this.#waiting.push(delivery);
    }
  }

  /** `nextAt` is the due time of the next retry that was not loaded. */
  loadedRetries(found: readonly DueDelivery[], nextAt: number | null): void {
    this.#isLoading = false;
    this.#retryDueAt = nextAt;
    const fresh = found.filter((delivery) => !this.#isOutdated(delivery));
    if (this.#isOrdered) fresh.sort((a, b) => (a.messageId < b.messageId ? -1 : 1));
    for (const delivery of fresh) this.#known.add(delivery.messageId);
    this.#retries.push(...fresh);
  }

  #isOutdated({ messageId }: DueDelivery): boolean {
    return this.#known.has(messageId) || this.#storedInLoad.has(messageId);
  }

  loadFailed(): void {
    this.#isLoading = false;
  }

  /** Notes the end of an attempt. Its message stays known until the end is stored. */
  ended(succeeded: boolean): void {
    this.#inFlight--;
    this.#unstored++;
    this.#hasSucceeded = succeeded;
    this.#concurrency = succeeded ? Math.min(this.#concurrency * 2, this.#maxConcurrency) : 1;
  }

  /** Returns a delivery that was started, but not attempted. */
  putBack(delivery: DueDelivery): void {
    this.#inFlight--;
    this.#known.delete(delivery.messageId);
    this.#hasMore = true;
  }

  /** The end of an attempt is stored. */
  stored(messageId: string, retryAt: number | null): void {
    this.#unstored = Math.max(0, this.#unstored - 1);
    this.#known.delete(messageId);
    if (this.#isLoading) this.#storedInLoad.add(messageId);
    if (retryAt !== null) this.#retryDueAt = Math.min(this.#retryDueAt ?? retryAt, retryAt);
  }

  /** Drops all deliveries that are not in flight. */
  clear(): void {
    for (const { messageId } of [...this.#waiting, ...this.#retries]) this.#known.delete(messageId);
    this.#waiting = [];
    this.#retries = [];
    this.#hasMore = false;
    this.#retryDueAt = null;
  }
}
