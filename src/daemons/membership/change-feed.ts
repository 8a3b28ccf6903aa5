import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import type { FeedChange, FeedCursor, FeedStore, FeedTopic } from '../../store/ports/index.ts';

/** Maximum delay until this process reads a change by another process. */
export const POLL_MS = 200;
const PAGE = 1000;
/** Time limit for other members to read a change. A member that cannot read the store must not block others. */
const IN_FORCE_TIMEOUT_MS = seconds(1);
const RECHECK_MS = 20;

/**
 * Applies changes of a topic to cached data. If `keys` is null, all data must be loaded again. A rejected call is
 * repeated at the next poll, so the function must be safe to repeat.
 */
export type ApplyChanges = (keys: readonly string[] | null) => void | Promise<void>;

export interface ChangeFeedDeps {
  store: FeedStore;
  /**
   * Fence token of this member if other processes share the store. After a change, other processes wait until this
   * member has read the change.
   */
  sharedAs: number | undefined;
  /** Time without a successful read after which `requireFresh` throws, in ms. */
  staleMs: number;
  clock: Clock;
  logger: Logger;
}

/**
 * Keeps cached data up to date with changes by other processes and nodes. Without other processes and nodes, the feed
 * does not read the store.
 */
export class ChangeFeed {
  readonly #deps: ChangeFeedDeps;
  readonly #followers = new Map<FeedTopic, ApplyChanges[]>();
  readonly #stopPolling: () => void;
  readonly #isAlone: boolean;
  #cursor: FeedCursor;
  /** Start time of the latest successful read, on the monotonic clock. All changes before this time are applied. */
  #freshAt: number;
  #reading: Promise<void> | undefined;
  /** A read that has not started yet, shared by all callers that need a new read. */
  #next: Promise<void> | undefined;
  #isClosed = false;

  private constructor(deps: ChangeFeedDeps, cursor: FeedCursor, freshAt: number) {
    const { clock, sharedAs } = deps;
    this.#deps = deps;
    this.#cursor = cursor;
    this.#freshAt = freshAt;
    this.#isAlone = sharedAs === undefined;
    this.#stopPolling = this.#isAlone ? () => {} : every(clock, POLL_MS, () => this.#poll());
  }

  static async open(deps: ChangeFeedDeps): Promise<ChangeFeed> {
    const { store, sharedAs, clock } = deps;
    const freshAt = clock.monotonic();
    const cursor = await store.begin();
    // A new member counts as having read all earlier changes, because its caches are loaded after this call.
    if (sharedAs !== undefined) await store.noteRead(sharedAs, cursor);
    return new ChangeFeed(deps, cursor, freshAt);
  }

  /**
   * Registers a function that applies changes of a topic. Call `follow` before loading the topic's data, so that no
   * change is missed.
   */
  follow(topic: FeedTopic, apply: ApplyChanges): void {
    this.#followers.set(topic, [...(this.#followers.get(topic) ?? []), apply]);
  }

  /**
   * Waits until all live members have applied the stored changes, but at most one second. Late members apply the
   * changes at their next poll. Resolves at once if no other process shares the store.
   */
  async spread(): Promise<void> {
    const { sharedAs } = this.#deps;
    if (sharedAs === undefined) return;
    await Promise.all([this.#catchUp().catch((error) => this.#warn(error)), this.#waitForMembers(sharedAs)]);
  }

  /**
   * Throws SERVICE_UNAVAILABLE while changes by other processes cannot be read. Otherwise, a credential that another
   * process revoked might be accepted.
   */
  requireFresh(): void {
    if (this.#isAlone) return;
    const { clock, staleMs } = this.#deps;
    const staleFor = clock.monotonic() - this.#freshAt;
    if (staleFor < staleMs) return;
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      `This gateway has not read revocations from its store for ${Math.floor(staleFor / 1000)} s, so it accepts no credentials (auth.staleMs); try again in a moment.`,
      { headers: { 'retry-after': '5' }, details: { retryAfterSeconds: 5 } },
    );
  }

  /** Stops polling. Settles when the last read has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopPolling();
    await (this.#next ?? this.#reading)?.catch(() => {});
  }

  #poll(): void {
    if (this.#reading) return;
    this.#catchUp().catch((error) => this.#warn(error));
  }

  /**
   * Reads all changes that were committed before the call. If a read is in progress, a new read follows, because the
   * current read might miss these changes.
   */
  #catchUp(): Promise<void> {
    if (!this.#reading) return this.#start();
    this.#next ??= this.#reading
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#start();
      });
    return this.#next;
  }

  #start(): Promise<void> {
    const reading = this.#read().finally(() => {
      this.#reading = undefined;
    });
    this.#reading = reading;
    return reading;
  }

  async #read(): Promise<void> {
    const { store, sharedAs, clock } = this.#deps;
    const before = this.#cursor;
    const startedAt = clock.monotonic();
    for (let isLast = false; !isLast && !this.#isClosed; ) {
      const { changes, cursor, isComplete } = await store.read(this.#cursor, PAGE);
      await (isComplete ? this.#apply(changes) : this.#reloadAll());
      this.#cursor = cursor;
      isLast = isComplete && changes.length < PAGE;
    }
    if (!this.#isClosed) this.#freshAt = startedAt;
    if (sharedAs !== undefined && this.#cursor !== before && !this.#isClosed)
      await store.noteRead(sharedAs, this.#cursor);
  }

  async #apply(changes: readonly FeedChange[]): Promise<void> {
    for (const [topic, ofTopic] of Map.groupBy(changes, (change) => change.topic)) {
      const keys = [...new Set(ofTopic.map(({ key }) => key))];
      await Promise.all((this.#followers.get(topic) ?? []).map((apply) => apply(keys)));
    }
  }

  async #reloadAll(): Promise<void> {
    await Promise.all([...this.#followers.values()].flat().map((apply) => apply(null)));
  }

  async #waitForMembers(own: number): Promise<void> {
    const { store, clock } = this.#deps;
    const until = performance.now() + IN_FORCE_TIMEOUT_MS;
    try {
      const mark = await store.latest();
      while (performance.now() < until) {
        const behind = await store.behind(mark);
        if (behind.every((fence) => fence === own)) return;
        // Uses wall-clock time, because each node in a test has a separate test clock.
        await sleep(RECHECK_MS);
      }
      this.#deps.logger.warn('A change is stored, but another gateway has not read it within a second', {
        meta: { waitedMs: IN_FORCE_TIMEOUT_MS, at: clock.now() },
      });
    } catch (error) {
      this.#warn(error);
    }
  }

  #warn(error: unknown): void {
    this.#deps.logger.warn(`Changes by other processes cannot be read: ${messageOf(error)}`, { error });
  }
}
