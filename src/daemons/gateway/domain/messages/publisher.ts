import { createHash } from 'node:crypto';
import { LIMITS, type NewMessage, type PublishedMessage } from '../../../../contracts/index.ts';
import { canonicalJson } from '../../../../kit/data/json.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  MessageContent,
  MessageStore,
  NewStoredMessage,
  StoredMessageResult,
} from '../../../../store/ports/index.ts';
import type { EndpointRegistry } from './endpoint-registry.ts';
import type { SortableIds } from './sortable-ids.ts';

export interface PublisherDeps {
  store: Pick<MessageStore, 'publish'>;
  registry: Pick<EndpointRegistry, 'match'>;
  ids: SortableIds;
  clock: Clock;
  /** Throws VALIDATION_ERROR for data that the declared event type does not allow. */
  validateType: ValidateType;
  /** Ids of the messages that are being stored. */
  publishing: Set<string>;
  /** Called with each stored message that has endpoints. */
  accept(content: MessageContent, endpointIds: readonly string[]): void;
  count(): void;
}

export type ValidateType = (type: string, data: unknown) => Promise<void> | undefined;

export interface PublishOptions {
  namespaceId: string;
  traceId: string;
}

/** Stores messages durably, and hands them to the dispatcher. @spec docs/messages.md */
export class Publisher {
  readonly #deps: PublisherDeps;

  constructor(deps: PublisherDeps) {
    this.#deps = deps;
  }

  /** Throws CONFLICT if the idempotency key was used for other content, and PAYLOAD_TOO_LARGE. */
  async publish(message: NewMessage, { namespaceId, traceId }: PublishOptions): Promise<PublishedMessage> {
    const { registry, ids, clock, validateType, accept, count } = this.#deps;
    const { type, data, application = null, idempotencyKey } = message;
    const checked = validateType(type, data);
    if (checked) await checked;
    const createdAt = clock.now();
    const timestamp = message.timestamp ?? createdAt;
    const body = bodyOf({ type, timestamp, data });
    const endpointIds = registry.match(namespaceId, application, type).map(({ record }) => record.id);
    const content: MessageContent = { id: ids.next('msg'), application, type, createdAt, traceId, body };
    const result = await this.#store({
      ...content,
      ...{ namespaceId, timestamp, endpointIds },
      key: idempotencyKey === undefined ? null : keyOf(message, { namespaceId, createdAt, idempotencyKey }),
    });
    const { outcome, id, endpoints } = result;
    if (outcome === 'conflict')
      throw new PlatformError(
        'CONFLICT',
        `The idempotency key "${idempotencyKey}" was used for message ${id} with other content. Use a new key.`,
        { details: { messageId: id } },
      );
    if (outcome === 'stored') {
      count();
      if (endpointIds.length > 0) accept(content, endpointIds);
    }
    return { id, timestamp: result.timestamp, duplicate: outcome === 'duplicate', endpoints };
  }

  async #store(message: NewStoredMessage): Promise<StoredMessageResult> {
    const { store, publishing } = this.#deps;
    publishing.add(message.id);
    try {
      return await store.publish(message);
    } finally {
      publishing.delete(message.id);
    }
  }
}

/** Returns the body of the requests. Throws PAYLOAD_TOO_LARGE. */
export function bodyOf({
  type,
  timestamp,
  data,
}: {
  type: string;
  timestamp: number;
  data: unknown;
}): Buffer {
  const text = JSON.stringify(data);
  const bytes = Buffer.byteLength(text);
  if (bytes > LIMITS.messageBytes)
    throw new PlatformError(
      'PAYLOAD_TOO_LARGE',
      `The data of a message may have at most ${LIMITS.messageBytes} bytes as JSON; it has ${bytes}. Send a link to large content.`,
      { details: { bytes, maxBytes: LIMITS.messageBytes } },
    );
  const time = new Date(timestamp).toISOString();
  return Buffer.from(`{"type":"${type}","timestamp":"${time}","data":${text}}`);
}

/** Keys are hashed, so that rows have a fixed size and the keys of customers are not readable in backups. */
function keyOf(
  { type, data, timestamp, application }: NewMessage,
  {
    namespaceId,
    createdAt,
    idempotencyKey,
  }: { namespaceId: string; createdAt: number; idempotencyKey: string },
) {
  const digestOf = (value: unknown): Buffer => createHash('sha256').update(canonicalJson(value)).digest();
  return {
    digest: digestOf([namespaceId, application ?? null, idempotencyKey]),
    content: digestOf([type, data ?? null, timestamp ?? null]),
    expiresAt: createdAt + LIMITS.idempotencyWindowMs,
  };
}
