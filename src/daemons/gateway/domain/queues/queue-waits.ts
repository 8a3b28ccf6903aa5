import { PlatformError } from '../../../../kit/errors/errors.ts';
import { createFairShares } from '../../../../kit/limits/fair-shares.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../../../kit/time/clock.ts';
import type { QueueKey, QueueStore } from '../../../../store/ports/index.ts';

/** Calls that wait for items, of all namespaces. Shared fairly, so that one namespace cannot take all of them. */
const MAX_WAITING = 1000;
const RETRY_AFTER_SECONDS = 5;
/**
 * Interval at which the store is asked for items that this gateway did not add: of other gateways, after a delay, and of
 * expired leases. @spec docs/decisions/0237
 */
const POLL_MS = 200;

export interface QueueWaitsDeps {
  store: Pick<QueueStore, 'due'>;
  clock: Clock;
  logger: Logger;
}

interface Wait {
  /** Set by a wake-up that came before the call began to wait. */
  isAwake: boolean;
  wake(): void;
}

interface WaitsOfQueue {
  key: QueueKey;
  /** In the order of the calls. */
  waits: Set<Wait>;
}

/** Lease calls that wait for items. Each item wakes one call, the one that has waited longest. */
export class QueueWaits {
  readonly #deps: QueueWaitsDeps;
  readonly #shares = createFairShares(MAX_WAITING);
  readonly #queues = new Map<string, WaitsOfQueue>();
  readonly #closing = new AbortController();
  #stopPolling: (() => void) | undefined;
  #polling: Promise<void> | undefined;

  constructor(deps: QueueWaitsDeps) {
    this.#deps = deps;
  }

  get waiting(): number {
    return MAX_WAITING - this.#shares.free;
  }

  /**
   * Repeats `take` until it returns items, `waitMs` has passed, the client disconnects or the gateway stops. Throws
   * RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE if too many calls wait.
   */
  async until<Item>(
    key: QueueKey,
    { waitMs, disconnected }: { waitMs: number; disconnected: AbortSignal },
    take: () => Promise<Item[]>,
  ): Promise<Item[]> {
    const { clock } = this.#deps;
    const end = clock.monotonic() + waitMs;
    const signal = AbortSignal.any([disconnected, this.#closing.signal]);
    this.#requireShare(key.namespaceId);
    const wait = newWait();
    try {
      this.#add(key, wait);
      for (;;) {
        wait.isAwake = false;
        const items = await take();
        const left = end - clock.monotonic();
        if (items.length > 0 || left <= 0 || signal.aborted) return items;
        await sleep(wait, { clock, ms: left, signal });
      }
    } finally {
      this.#remove(key, wait);
      this.#shares.release(key.namespaceId);
    }
  }

  /** Wakes a call that waits for items of the queue. */
  wake(key: QueueKey): void {
    const queue = this.#queues.get(nameOf(key));
    for (const wait of queue?.waits ?? []) {
      if (wait.isAwake) continue;
      wait.isAwake = true;
      wait.wake();
      return;
    }
  }

  /** Ends all waits. Their calls return what they have. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#stopPolling?.();
    await this.#polling;
  }

  #requireShare(namespaceId: string): void {
    if (this.#shares.take(namespaceId)) return;
    const details = { waiting: MAX_WAITING, retryAfterSeconds: RETRY_AFTER_SECONDS };
    const headers = { 'retry-after': String(RETRY_AFTER_SECONDS) };
    if (this.#shares.free === 0)
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        `${MAX_WAITING} lease calls wait already. Call without "waitMs", or try again in ${RETRY_AFTER_SECONDS} s.`,
        { details, headers },
      );
    throw new PlatformError(
      'RATE_LIMIT_EXCEEDED',
      `The namespace "${namespaceId}" has used its share of the ${MAX_WAITING} lease calls that can wait. Call without "waitMs", or try again in ${RETRY_AFTER_SECONDS} s.`,
      { details: { ...details, namespaceId }, headers },
    );
  }

  #add(key: QueueKey, wait: Wait): void {
    const name = nameOf(key);
    const queue = this.#queues.get(name) ?? { key, waits: new Set() };
    queue.waits.add(wait);
    this.#queues.set(name, queue);
    this.#stopPolling ??= every(this.#deps.clock, POLL_MS, () => {
      this.#polling ??= this.#poll().finally(() => {
        this.#polling = undefined;
      });
    });
  }

  /** Removes a call. If it was awake, another call gets the items that it did not take. */
  #remove(key: QueueKey, wait: Wait): void {
    const name = nameOf(key);
    const queue = this.#queues.get(name);
    queue?.waits.delete(wait);
    if (queue?.waits.size === 0) this.#queues.delete(name);
    if (wait.isAwake) this.wake(key);
    if (this.#queues.size > 0) return;
    this.#stopPolling?.();
    this.#stopPolling = undefined;
  }

  async #poll(): Promise<void> {
    try {
      const keys = [...this.#queues.values()].map(({ key }) => key);
      for (const key of await this.#deps.store.due(keys)) this.wake(key);
    } catch (error) {
      this.#deps.logger.warn('Queues could not be read for waiting lease calls; retrying', { error });
    }
  }
}

const nameOf = ({ namespaceId, queue }: QueueKey): string => JSON.stringify([namespaceId, queue]);

const newWait = (): Wait => ({ isAwake: false, wake() {} });

/** Resolves when the call is woken, the time has passed or the signal aborts. */
async function sleep(
  wait: Wait,
  { clock, ms, signal }: { clock: Clock; ms: number; signal: AbortSignal },
): Promise<void> {
  if (wait.isAwake || signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  wait.wake = resolve;
  const stopTimer = clock.after(ms, resolve);
  const onAbort = (): void => resolve();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await promise;
  } finally {
    wait.wake = () => {};
    stopTimer();
    signal.removeEventListener('abort', onAbort);
  }
}
