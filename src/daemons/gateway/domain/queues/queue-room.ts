import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import {
  type NewQueueItem,
  QUEUE_ITEM_BYTES,
  type QueueStore,
  type QueueUsage,
} from '../../../../store/ports/index.ts';

export interface QueueRoomDeps {
  store: Pick<QueueStore, 'usage' | 'count'>;
  clock: Clock;
  /** Maximum size of the queues of a namespace: `retention.deliveriesMaxBytes` of the config. */
  maxBytes: number;
}

/** Usage of a namespace as it was read, and what this gateway added since. */
interface Known extends QueueUsage {
  readAt: number;
}

const MAX_QUEUES = 1000;
/** Time for which a usage is used. Other gateways may add items meanwhile, so the limit can be exceeded a little. */
const FRESH_MS = 5000;
/** The same while the queues are full, so that items are accepted again soon after others were acknowledged. */
const FRESH_FULL_MS = 250;
const RETRY_AFTER_SECONDS = 30;

/** Limits the size of queues, so that a queue without a program does not fill the disk. @spec docs/queues.md */
export class QueueRoom {
  readonly #deps: QueueRoomDeps;
  readonly #known = new Map<string, Promise<Known>>();

  constructor(deps: QueueRoomDeps) {
    this.#deps = deps;
  }

  /** Throws SERVICE_UNAVAILABLE if the queues of the namespace have no room for the item. */
  async require(item: NewQueueItem): Promise<void> {
    const { maxBytes, store } = this.#deps;
    const size = QUEUE_ITEM_BYTES + item.headers.length + item.body.length;
    const fits = ({ bytes }: QueueUsage): boolean => bytes + size <= maxBytes;
    let usage = await this.#usage(item.namespaceId, FRESH_MS);
    if (!fits(usage)) usage = await this.#usage(item.namespaceId, FRESH_FULL_MS);
    if (!fits(usage))
      throw full(item, `The queues of the namespace "${item.namespaceId}" hold ${maxBytes} bytes`, {
        hint: `Lease and acknowledge items, delete them with svc queues purge, or raise retention.deliveriesMaxBytes.`,
      });
    if (usage.queues >= MAX_QUEUES && !(await store.count(item)))
      throw full(item, `The namespace "${item.namespaceId}" has ${MAX_QUEUES} queues`, {
        hint: 'Use a queue that exists.',
      });
    usage.bytes += size;
  }

  async #usage(namespaceId: string, freshMs: number): Promise<Known> {
    const { store, clock } = this.#deps;
    const known = this.#known.get(namespaceId);
    const usage = await known?.catch(() => undefined);
    if (usage && clock.monotonic() - usage.readAt < freshMs) return usage;
    // Of concurrent calls, the first one reads.
    if (this.#known.get(namespaceId) !== known) return this.#known.get(namespaceId)!;
    const readAt = clock.monotonic();
    const reading = store.usage(namespaceId).then((read) => ({ ...read, readAt }));
    this.#known.set(namespaceId, reading);
    return reading;
  }
}

function full({ queue }: NewQueueItem, fact: string, { hint }: { hint: string }): PlatformError {
  return new PlatformError(
    'SERVICE_UNAVAILABLE',
    `${fact}, which is the maximum, so nothing was added. ${hint}`,
    {
      details: { queue, retryAfterSeconds: RETRY_AFTER_SECONDS },
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    },
  );
}
