import type { DueDelivery, StoredEndpoint } from '../../../../../store/ports/index.ts';
import { TokenBucket } from './token-bucket.ts';

/** Attempts in flight at an endpoint that answers. */
export const MAX_CONCURRENCY = 16;
const READ_AHEAD = 31;
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
  #isLoading = false;
  /** Changes since the load began to read. Its result may be older. */
  #hasGrown = false;
  #hasPaused = false;
  readonly #storedInRead = new Set<string>();
  #retryNotedInRead: number | null = null;
  #retryDueAt: number | null = null;
  #isPaused = false;
  readonly #maxHeld: number;
  failingSince: number | null = null;

  constructor(id: string, maxHeld = MAX_HELD) {
    this.id = id;
    this.#maxHeld = maxHeld;
  }

  /** Applies the settings of an enabled endpoint. */
  configure({ ordered, rateLimitPerSecond }: StoredEndpoint, now: number): void {
    if (this.#isPaused) {
      this.#isPaused = false;
      // Deliveries that were dropped can still be unfinished in the store.
      this.noteStored({ waiting: true, retryAt: now });
    }
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

  /** Whether the endpoint is disabled or deleted. Attempts can still be in flight. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Whether nothing is left to remember. */
  get isEmpty(): boolean {
    if (this.#known.size > 0 || this.#isLoading) return false;
    return this.#isPaused || (!this.#hasMore && this.#retryDueAt === null);
  }

  /** Messages of the next attempts, whose contents are read together. */
  get upcoming(): string[] {
    const next = [...this.#retries.slice(0, READ_AHEAD), ...this.#waiting.slice(0, READ_AHEAD)];
    return next.slice(0, READ_AHEAD).map(({ messageId }) => messageId);
  }

  /** Adds a stored delivery. It stays in the store if the memory is full, or if older ones are there. */
  push(delivery: DueDelivery): void {
    if (this.#hasMore || this.#waiting.length >= this.#maxHeld) this.#noteMore();
    else {
      this.#known.add(delivery.messageId);
      this.#waiting.push(delivery);
    }
  }

  /** Notes that the store has deliveries that are not held. */
  noteStored({ waiting, retryAt }: { waiting: boolean; retryAt: number | null }): void {
    if (waiting) this.#noteMore();
    this.#noteRetry(retryAt);
  }

  #noteMore(): void {
    this.#hasMore = true;
    this.#hasGrown = true;
  }

  #noteRetry(at: number | null): void {
    this.#retryDueAt = earliest(this.#retryDueAt, at);
    if (this.#isLoading) this.#retryNotedInRead = earliest(this.#retryNotedInRead, at);
  }

  next(now: number): NextStep {
    if (this.#isPaused || this.#inFlight >= this.#concurrency) return IDLE;
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
    const retries = this.#retryDueAt !== null && this.#retryDueAt <= now;
    return { retries, limit: this.#maxHeld + this.#known.size };
  }

  /** The result of the load will contain all that was stored until now. */
  beginRead(): void {
    this.#hasGrown = false;
    // A pause that ended before the read does not make its result outdated.
    this.#hasPaused = this.#isPaused;
    this.#storedInRead.clear();
    this.#retryNotedInRead = null;
  }

  /** `hasMore`: whether the store may have deliveries after those that were found. */
  loadedWaiting(found: readonly DueDelivery[], hasMore: boolean): void {
    this.#isLoading = false;
    this.#hasMore = hasMore || this.#hasGrown;
    this.#waiting.push(...this.#fresh(found));
  }

  /** `nextAt` is the due time of the next retry that was not loaded. */
  loadedRetries(found: readonly DueDelivery[], nextAt: number | null): void {
    this.#isLoading = false;
    // A retry that was stored during the load can be earlier than the one that the load found.
    this.#retryDueAt = earliest(nextAt, this.#retryNotedInRead);
    const fresh = this.#fresh(found);
    if (this.#isOrdered) fresh.sort((a, b) => (a.messageId < b.messageId ? -1 : 1));
    this.#retries.push(...fresh);
  }

  /** Returns the found deliveries that are not known, and notes them as known. */
  #fresh(found: readonly DueDelivery[]): DueDelivery[] {
    if (this.#hasPaused) return [];
    const fresh = found.filter(
      ({ messageId }) => !this.#known.has(messageId) && !this.#storedInRead.has(messageId),
    );
    for (const { messageId } of fresh) this.#known.add(messageId);
    return fresh;
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

  /** Notes the end of a started delivery without a request, which says nothing about the endpoint. */
  skipped(): void {
    this.#inFlight--;
    this.#unstored++;
    this.#bucket?.giveBack();
  }

  /** Returns a delivery that was started, but not attempted. It is loaded again. */
  putBack({ messageId, nextAttemptAt }: DueDelivery): void {
    this.#inFlight--;
    this.#bucket?.giveBack();
    this.#known.delete(messageId);
    // Later messages of an ordered endpoint must not be sent before it.
    if (this.#isOrdered) this.#drop();
    if (nextAttemptAt === null) this.#noteMore();
    else this.#noteRetry(nextAttemptAt);
  }

  /** The end of an attempt is stored. */
  stored(messageId: string, retryAt: number | null): void {
    this.#unstored = Math.max(0, this.#unstored - 1);
    this.#known.delete(messageId);
    if (this.#isLoading) this.#storedInRead.add(messageId);
    this.#noteRetry(retryAt);
  }

  /**
   * Drops all deliveries that are not in flight, because the endpoint is disabled or deleted. The queue must be kept
   * until it is empty: if the endpoint is enabled, the messages in flight must not be sent by a second attempt.
   */
  pause(): void {
    this.#isPaused = true;
    this.#drop();
    this.#hasMore = false;
    this.#retryDueAt = null;
    this.#hasPaused = true;
  }

  #drop(): void {
    for (const { messageId } of this.#waiting) this.#known.delete(messageId);
    for (const { messageId, nextAttemptAt } of this.#retries) {
      this.#known.delete(messageId);
      this.#noteRetry(nextAttemptAt);
    }
    if (this.#waiting.length > 0) this.#noteMore();
    this.#waiting = [];
    this.#retries = [];
  }
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
