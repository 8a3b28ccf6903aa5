import type { QueueItem, QueueItemDetails, QueueItemStatus } from '../../../../contracts/index.ts';
import { formatBulkCursor, parseBulkCursor } from '../../../../kit/data/bulk-cursor.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  QueueCursor,
  QueueItemPage,
  QueueItemRecord,
  QueueKey,
  QueueStore,
} from '../../../../store/ports/index.ts';
import { contentOf, viewOf } from './queue-content.ts';
import type { QueueWaits } from './queue-waits.ts';
import type { Queues } from './queues.ts';

export interface QueueItemsDeps {
  store: QueueStore;
  queues: Pick<Queues, 'endLeases'>;
  waits: QueueWaits;
  clock: Clock;
}

const PAGE = 200;
const MAX_COUNTED = 10_000;
const SAMPLE = 10;
const PURGE_BATCH = 1000;

/** Lists items, and lets operators retry and delete them. @spec docs/queues.md */
export class QueueItems {
  readonly #deps: QueueItemsDeps;

  constructor(deps: QueueItemsDeps) {
    this.#deps = deps;
  }

  async list(
    key: QueueKey,
    {
      status,
      limit,
      cursor,
    }: { status?: QueueItemStatus | undefined; limit: number; cursor?: string | undefined },
  ) {
    const after = cursor === undefined ? undefined : parseCursor(cursor);
    if (!after) await this.#deps.queues.endLeases(key);
    const { items, next } = await this.#deps.store.list(key, { status, after, limit });
    return { items: items.map(viewOf), nextCursor: next && formatCursor(next) };
  }

  async get(key: QueueKey, id: string): Promise<QueueItemDetails> {
    const found = await this.#find(key, id);
    const { headers, body } = found;
    const content = headers === undefined || body === undefined ? null : contentOf({ headers, body });
    return { ...viewOf(found), content };
  }

  /** Makes a dead item wait again. Throws CONFLICT for an item that is not dead. */
  async retry(key: QueueKey, id: string): Promise<QueueItem> {
    const { store, waits } = this.#deps;
    const [retried] = await store.retry(key, [id]);
    const item = await this.#find(key, id);
    if (retried === undefined)
      throw new PlatformError(
        'CONFLICT',
        `The item "${id}" is ${item.status}. Only dead items can be retried.`,
      );
    waits.wake(key);
    return viewOf(item);
  }

  /**
   * Retries dead items, oldest first. Items that become dead after the first call are not retried, so that items that
   * fail at once do not keep the action going. @spec docs/decisions/0232
   */
  async retryDead(
    key: QueueKey,
    { limit, dryRun, cursor: text }: { limit: number; dryRun: boolean; cursor?: string | undefined },
  ) {
    const { store, waits, clock } = this.#deps;
    const selection = { action: 'retry-dead', ...key };
    await this.#deps.queues.endLeases(key);
    const now = clock.now();
    const cursor =
      text === undefined
        ? { id: '', pinnedAt: now, newest: await store.lastDeadAt(key), at: [] }
        : parseBulkCursor(text, selection, now);
    if (dryRun) {
      const nextCursor = formatBulkCursor(cursor, selection);
      return {
        items: [],
        refused: [],
        skipped: 0,
        matching: await this.#matching(key, cursor.newest),
        nextCursor,
      };
    }
    const { items, next } = await store.list(key, { status: 'dead', limit });
    const chosen = items.filter(({ endedAt }) => endedAt! <= cursor.newest).map(({ id }) => id);
    const retried = await store.retry(key, chosen);
    for (const _ of retried) waits.wake(key);
    const isDone = next === null || chosen.length < items.length;
    return {
      items: retried.map((id) => ({ id })),
      refused: [],
      skipped: 0,
      matching: null,
      nextCursor: isDone ? null : formatBulkCursor(cursor, selection),
    };
  }

  /** Deletes an item. Throws CONFLICT for a leased item. */
  async remove(key: QueueKey, id: string): Promise<void> {
    await this.#deps.queues.endLeases(key);
    await this.#find(key, id);
    const [removed] = await this.#deps.store.remove(key, [id]);
    if (removed === undefined)
      throw new PlatformError(
        'CONFLICT',
        `The item "${id}" is leased. Wait until its lease ends, and delete it then.`,
      );
  }

  async purge(key: QueueKey, status: 'waiting' | 'dead'): Promise<{ deleted: number; more: boolean }> {
    await this.#deps.queues.endLeases(key);
    const deleted = await this.#deps.store.purge(key, status, PURGE_BATCH);
    return { deleted, more: deleted === PURGE_BATCH };
  }

  async #find(key: QueueKey, id: string) {
    const found = await this.#deps.store.find(key, id);
    if (found) return found;
    throw new PlatformError('NOT_FOUND', `The queue "${key.queue}" has no item "${id}".`);
  }

  async #matching(key: QueueKey, newest: number) {
    const sample: QueueItem[] = [];
    let count = 0;
    for await (const item of this.#dead(key)) {
      if (item.endedAt! > newest) break;
      if (count === MAX_COUNTED) return { count, isComplete: false, sample };
      if (count++ < SAMPLE) sample.push(viewOf(item));
    }
    return { count, isComplete: true, sample };
  }

  async *#dead(key: QueueKey): AsyncGenerator<QueueItemRecord> {
    let after: QueueCursor | undefined;
    do {
      const page: QueueItemPage = await this.#deps.store.list(key, { status: 'dead', after, limit: PAGE });
      yield* page.items;
      after = page.next ?? undefined;
    } while (after);
  }
}

const formatCursor = ({ state, dueAt, position }: QueueCursor): string => `${state}.${dueAt}.${position}`;

function parseCursor(text: string): QueueCursor {
  const [, state, dueAt, position] = /^(\d)\.(\d{1,15})\.(\d{1,15})$/.exec(text) ?? [];
  if (position === undefined)
    throw new PlatformError('VALIDATION_ERROR', 'query.cursor: must be the nextCursor of the previous page.');
  return { state: Number(state), dueAt: Number(dueAt), position: Number(position) };
}
