import type {
  Message,
  MessageAttempt,
  MessageDelivery,
  MessageDetails,
  MessageStatus,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type {
  AttemptFilter,
  MessageAttemptRecord,
  MessageDeliveryRecord,
  MessageRecord,
  MessageStore,
} from '../../../../store/ports/index.ts';
import { pageOf } from '../page.ts';
import type { EndpointRegistry } from './endpoint-registry.ts';
import { firstIdAt } from './sortable-ids.ts';

export interface MessageQuery {
  type?: string | undefined;
  application?: string | undefined;
  endpointId?: string | undefined;
  status?: MessageStatus | undefined;
  traceId?: string | undefined;
  since?: number | undefined;
  until?: number | undefined;
  cursor?: string | undefined;
  limit: number;
}

type AttemptQuery = Omit<AttemptFilter, 'after'> & {
  cursor?: string | undefined;
  /** Application of a portal. */
  application?: string | undefined;
};

/** Pages without a match that a list reads before it answers what it has. */
const MAX_PAGES = 5;

/** Shows messages and their attempts. @spec docs/messages.md */
export class MessageLists {
  readonly #store: MessageStore;
  readonly #registry: Pick<EndpointRegistry, 'find'>;

  constructor(store: MessageStore, registry: Pick<EndpointRegistry, 'find'>) {
    this.#store = store;
    this.#registry = registry;
  }

  async list(namespaceId: string, { since, until, cursor, ...query }: MessageQuery) {
    const last = until === undefined ? undefined : firstIdAt('msg', until);
    const from = since === undefined ? undefined : firstIdAt('msg', since);
    let before = cursor === undefined || (last !== undefined && last < cursor) ? last : cursor;
    const items: MessageRecord[] = [];
    for (let pages = 0; ; pages++) {
      const limit = query.limit - items.length;
      const page = await this.#store.list({ ...query, namespaceId, from, before, limit });
      items.push(...page.items);
      if (page.next === null || items.length === query.limit || pages === MAX_PAGES)
        return { items: items.map(messageView), nextCursor: page.next };
      before = page.next;
    }
  }

  async get(namespaceId: string, id: string, application?: string): Promise<MessageDetails> {
    const { body, deliveries, ...message } = await this.require(namespaceId, id, application);
    const { data } = JSON.parse(Buffer.from(body).toString()) as { data: unknown };
    return {
      ...messageView(message),
      data,
      endpoints: deliveries
        .filter(({ endpointId }) => this.isOf(application, endpointId))
        .map((delivery) => this.#deliveryView(delivery)),
    };
  }

  /** Returns whether an endpoint belongs to the application of a portal. Operators can move endpoints. */
  isOf(application: string | undefined, endpointId: string): boolean {
    return application === undefined || this.#registry.find(endpointId)?.record.application === application;
  }

  /** Throws NOT_FOUND, also for messages of another namespace or application. */
  async require(namespaceId: string, id: string, application?: string) {
    const found = await this.#store.find(namespaceId, id);
    if (found && (application === undefined || found.application === application)) return found;
    throw new PlatformError(
      'NOT_FOUND',
      `There is no message "${id}", or it was deleted after its retention.`,
    );
  }

  /**
   * Lists attempts, newest first. A portal sees only those of messages of its application, at endpoints that belong to
   * it, so its pages can have fewer items.
   */
  async attempts({
    cursor,
    limit,
    application,
    ...filter
  }: AttemptQuery): Promise<{ items: MessageAttempt[]; nextCursor: string | null }> {
    const after = cursor === undefined ? undefined : parseCursor(cursor);
    const rows = await this.#store.attempts({ ...filter, after, limit: limit + 1 });
    const { items, nextCursor } = pageOf(rows, limit, formatCursor, (row) => row);
    const isShown = (row: MessageAttemptRecord): boolean =>
      application === undefined ||
      (row.application === application && this.isOf(application, row.endpointId));
    return { items: items.filter(isShown).map(attemptView), nextCursor };
  }

  #deliveryView(delivery: MessageDeliveryRecord): MessageDelivery {
    const { messageId: _, ...shown } = delivery;
    return { ...shown, url: this.#registry.find(delivery.endpointId)?.record.url ?? null };
  }
}

export function messageView({ namespaceId: _, counts, ...message }: MessageRecord): Message {
  return { ...message, deliveries: counts };
}

export function attemptView({
  succeeded,
  excerpt,
  application: _,
  ...attempt
}: MessageAttemptRecord): MessageAttempt {
  return { ...attempt, outcome: succeeded ? 'succeeded' : 'failed', responseExcerpt: excerpt };
}

function formatCursor({ startedAt, messageId, endpointId, number }: MessageAttemptRecord): string {
  return Buffer.from(JSON.stringify([startedAt, messageId, endpointId, number])).toString('base64url');
}

function parseCursor(text: string): NonNullable<AttemptFilter['after']> {
  try {
    const [startedAt, messageId, endpointId, number] = JSON.parse(
      Buffer.from(text, 'base64url').toString(),
    ) as unknown[];
    if (
      Number.isSafeInteger(startedAt) &&
      typeof messageId === 'string' &&
      typeof endpointId === 'string' &&
      Number.isSafeInteger(number)
    )
      return { startedAt: startedAt as number, messageId, endpointId, number: number as number };
  } catch {
    // The text is refused below.
  }
  throw new PlatformError('VALIDATION_ERROR', 'query.cursor: must be the nextCursor of the previous page.');
}
