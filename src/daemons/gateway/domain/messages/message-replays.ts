import type { MessageStatus } from '../../../../contracts/index.ts';
import { type BulkCursor, formatBulkCursor, parseBulkCursor } from '../../../../kit/data/bulk-cursor.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { DueDelivery, MessageStore, ReplaySelection } from '../../../../store/ports/index.ts';
import type { EndpointAdmin, EndpointScope } from './endpoint-admin.ts';
import type { EndpointRegistry } from './endpoint-registry.ts';
import type { MessageLists } from './message-lists.ts';
import { firstIdAt, idOfNumbers, numbersOfId } from './sortable-ids.ts';

export interface MessageReplaysDeps {
  store: MessageStore;
  registry: Pick<EndpointRegistry, 'find'>;
  endpoints: Pick<EndpointAdmin, 'require'>;
  lists: Pick<MessageLists, 'require'>;
  clock: Clock;
  replayed(deliveries: readonly DueDelivery[]): void;
}

export interface ReplayFilter {
  endpointId?: string | undefined;
  type?: string | undefined;
  application?: string | undefined;
  status: 'dead' | 'succeeded' | 'all';
  since?: number | undefined;
  until?: number | undefined;
}

export interface BulkOptions {
  limit: number;
  dryRun: boolean;
  cursor?: string | undefined;
}

interface Reference {
  messageId: string;
  endpointId: string;
}

/** A delivery to replay, with the application of its message. */
interface Replayable extends Reference {
  application: string | null;
}

const STATUSES: Record<ReplayFilter['status'], MessageStatus[]> = {
  dead: ['dead'],
  succeeded: ['succeeded'],
  all: ['dead', 'succeeded'],
};
const MAX_COUNTED = 10_000;
/** Pages that a count reads, so that a filter that matches little does not read all messages. */
const MAX_COUNTED_PAGES = 100;
const SAMPLE = 10;
const PAGE = 1000;

/** Sends messages again. They keep their `webhook-id`. @spec docs/messages.md "Replay" */
export class MessageReplays {
  readonly #deps: MessageReplaysDeps;

  constructor(deps: MessageReplaysDeps) {
    this.#deps = deps;
  }

  /** Throws CONFLICT if the message cannot be sent again to the given endpoint. */
  async one(
    { namespaceId, application }: EndpointScope,
    id: string,
    endpointId: string | undefined,
  ): Promise<{ items: Reference[]; skipped: number }> {
    const { lists, endpoints } = this.#deps;
    const { deliveries, application: owner } = await lists.require(namespaceId, id, application);
    if (endpointId !== undefined) {
      const endpoint = await endpoints.require({ namespaceId, application }, endpointId);
      if (endpoint.application !== owner)
        throw new PlatformError(
          'CONFLICT',
          `The message ${id} and the endpoint ${endpointId} belong to different applications.`,
        );
    }
    const chosen =
      endpointId === undefined
        ? deliveries.map((delivery) => ({
            messageId: id,
            endpointId: delivery.endpointId,
            application: owner,
          }))
        : [{ messageId: id, endpointId, application: owner }];
    const items = await this.#replay(namespaceId, chosen, { add: endpointId !== undefined });
    if (endpointId !== undefined && items.length === 0)
      throw new PlatformError(
        'CONFLICT',
        this.#isEnabled(endpointId)
          ? `The message ${id} is not done at endpoint ${endpointId}. Wait until it has succeeded or is dead.`
          : `The endpoint ${endpointId} is disabled. Enable it first.`,
      );
    return { items, skipped: chosen.length - items.length };
  }

  /**
   * Replays what matches, oldest first. A delivery that ends after the first call never matches again, so a repeated
   * call does nothing twice. @spec docs/decisions/0232
   */
  async many(scope: EndpointScope, filter: ReplayFilter, { limit, dryRun, cursor: text }: BulkOptions) {
    const { clock, endpoints } = this.#deps;
    const { namespaceId } = scope;
    const selected = { ...filter, application: scope.application ?? filter.application };
    if (filter.endpointId !== undefined) await endpoints.require(scope, filter.endpointId);
    const identity = { action: 'replay-messages', namespaceId, ...selected };
    const now = clock.now();
    const cursor: BulkCursor =
      text === undefined
        ? { id: '', pinnedAt: now, newest: now, at: [] }
        : parseBulkCursor(text, identity, now);
    const selection = selectionOf(namespaceId, selected, cursor);
    const empty = { items: [], refused: [], skipped: 0 };
    if (dryRun) {
      const matching = await this.#matching(selection);
      return { ...empty, matching, nextCursor: formatBulkCursor(cursor, identity) };
    }
    const { items: chosen, next } = await this.#deps.store.replayable({ ...selection, limit });
    const items = await this.#replay(namespaceId, chosen, { add: false });
    const nextCursor = next && formatBulkCursor({ ...cursor, at: numbersOfId(next) }, identity);
    return { ...empty, items, skipped: chosen.length - items.length, matching: null, nextCursor };
  }

  async #replay(
    namespaceId: string,
    chosen: readonly Replayable[],
    { add }: { add: boolean },
  ): Promise<Reference[]> {
    const { store, registry, clock, replayed } = this.#deps;
    const sendable = chosen
      .filter(
        ({ endpointId, application }) =>
          this.#isEnabled(endpointId) && registry.find(endpointId)?.record.application === application,
      )
      .map(({ messageId, endpointId }) => ({ messageId, endpointId }));
    if (sendable.length === 0) return [];
    const deliveries = await store.replay(namespaceId, sendable, { endedUntil: clock.now(), add });
    replayed(deliveries);
    return deliveries.map(({ messageId, endpointId }) => ({ messageId, endpointId }));
  }

  #isEnabled(endpointId: string): boolean {
    return this.#deps.registry.find(endpointId)?.record.disabledReason === null;
  }

  async #matching(selection: ReplaySelection) {
    const sample: Reference[] = [];
    let count = 0;
    let after: string | null = selection.after;
    for (let pages = 0; after !== null; pages++) {
      if (count >= MAX_COUNTED || pages >= MAX_COUNTED_PAGES)
        return { count: Math.min(count, MAX_COUNTED), isComplete: false, sample };
      const page = await this.#deps.store.replayable({ ...selection, after, limit: PAGE });
      count += page.items.length;
      const shown = page.items.slice(0, SAMPLE - sample.length);
      sample.push(...shown.map(({ messageId, endpointId }) => ({ messageId, endpointId })));
      after = page.next;
    }
    return { count, isComplete: true, sample };
  }
}

function selectionOf(
  namespaceId: string,
  { status, since, until, endpointId, type, application }: ReplayFilter,
  { newest, at }: BulkCursor,
): ReplaySelection {
  const from = since === undefined ? '' : firstIdAt('msg', since);
  // `after` excludes its id, and the smallest id of a time is never used twice with its random end.
  const after = at.length === 3 ? idOfNumbers('msg', at) : from;
  return {
    ...{ namespaceId, endpointId, type, application, statuses: STATUSES[status], after, endedUntil: newest },
    before: until === undefined ? '~' : firstIdAt('msg', until),
    limit: PAGE,
  };
}
