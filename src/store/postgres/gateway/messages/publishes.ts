import type { NewStoredMessage, StoredMessageResult } from '../../../ports/index.ts';
import { BatchWriter } from '../../batch-writer.ts';
import type { PostgresDatabase } from '../../database.ts';
import type { Sql } from '../../named-sql.ts';

const MAX_ITEMS = 256;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_RUNNING = 2;
/** Size of the columns of a message without its body, and of one delivery. */
const ROW_BYTES = 300;
const DELIVERY_BYTES = 100;

interface KeyRow {
  digest: Buffer;
  messageId: string;
  content: Buffer;
  timestamp: number | null;
  endpoints: number;
}

/** Stores messages with their deliveries and keys in batches. Each batch is one statement. */
export class MessagePublishes {
  readonly #database: PostgresDatabase;
  readonly #writer: BatchWriter<NewStoredMessage, boolean>;

  constructor(database: PostgresDatabase) {
    this.#database = database;
    this.#writer = new BatchWriter({
      write: (messages) => database.write((sql) => insertMessages(sql, messages)),
      sizeOf: ({ body, endpointIds }) => ROW_BYTES + body.byteLength + endpointIds.length * DELIVERY_BYTES,
      maxRunning: MAX_RUNNING,
      maxItems: MAX_ITEMS,
      maxBytes: MAX_BYTES,
    });
  }

  async publish(message: NewStoredMessage): Promise<StoredMessageResult> {
    const { id, timestamp, endpointIds } = message;
    for (;;) {
      if (await this.#writer.add(message))
        return { outcome: 'stored', id, timestamp, endpoints: endpointIds.length };
      const earlier = await this.#earlier(message);
      // The key can expire and be pruned between the two statements. The message is then stored.
      if (earlier) return earlier;
    }
  }

  async #earlier({ key }: NewStoredMessage): Promise<StoredMessageResult | undefined> {
    const [row] = await this.#database.read((sql) => sql<KeyRow>(KEY, { digest: key!.digest }));
    if (!row) return undefined;
    const { messageId: id, timestamp, endpoints, content } = row;
    const outcome = content.equals(key!.content) ? 'duplicate' : 'conflict';
    return { outcome, id, timestamp: timestamp ?? 0, endpoints };
  }
}

/** Inserts the messages whose keys are new. Returns for each message whether it was inserted. */
export async function insertMessages(sql: Sql, messages: readonly NewStoredMessage[]): Promise<boolean[]> {
  const keyed = messages.filter(({ key }) => key !== null);
  const deliveries = messages.flatMap(({ id, namespaceId, endpointIds }) =>
    endpointIds.map((endpointId) => ({ id, namespaceId, endpointId })),
  );
  const rows = await sql<{ id: string }>(PUBLISH, {
    ids: messages.map(({ id }) => id),
    namespaces: messages.map(({ namespaceId }) => namespaceId),
    applications: messages.map(({ application }) => application),
    types: messages.map(({ type }) => type),
    timestamps: messages.map(({ timestamp }) => timestamp),
    created: messages.map(({ createdAt }) => createdAt),
    traces: messages.map(({ traceId }) => traceId),
    // One binary value. Elements of an array would be sent as hexadecimal text.
    bodies: Buffer.concat(messages.map(({ body }) => body)),
    bodyBytes: messages.map(({ body }) => body.byteLength),
    bodyStarts: startsOf(messages),
    haveKeys: messages.map(({ key }) => key !== null),
    keyMessages: keyed.map(({ id }) => id),
    digests: keyed.map(({ key }) => key!.digest),
    contents: keyed.map(({ key }) => key!.content),
    expiries: keyed.map(({ key }) => key!.expiresAt),
    deliveryMessages: deliveries.map(({ id }) => id),
    deliveryNamespaces: deliveries.map(({ namespaceId }) => namespaceId),
    deliveryEndpoints: deliveries.map(({ endpointId }) => endpointId),
    now: Math.min(...messages.map(({ createdAt }) => createdAt)),
  });
  const added = new Set(rows.map(({ id }) => id));
  return messages.map(({ id }) => added.has(id));
}

/** Returns the positions of the bodies in their concatenation. The first byte has position 1. */
function startsOf(messages: readonly NewStoredMessage[]): number[] {
  let next = 1;
  return messages.map(({ body }) => {
    next += body.byteLength;
    return next - body.byteLength;
  });
}

/** Keys are claimed in the order of their digests, so that concurrent batches cannot deadlock. */
const PUBLISH = `
  with claimed as (
    insert into svc.message_key (digest, message_id, content, expires_at)
    select distinct on (digest) digest, message_id, content, expires_at
    from unnest(:digests::bytea[], :keyMessages::text[], :contents::bytea[], :expiries::bigint[])
      with ordinality as k (digest, message_id, content, expires_at, n)
    order by digest, n
    on conflict (digest) do update set message_id = excluded.message_id, content = excluded.content,
      expires_at = excluded.expires_at
      where svc.message_key.expires_at <= :now
    returning message_id
  ), added as (
    insert into svc.message (id, namespace_id, application, type, timestamp, created_at, trace_id, body_bytes, body)
    select id, namespace_id, application, type, timestamp, created_at, trace_id, body_bytes,
      substr(:bodies::bytea, body_start, body_bytes)
    from unnest(:ids::text[], :namespaces::text[], :applications::text[], :types::text[], :timestamps::bigint[],
      :created::bigint[], :traces::text[], :bodyStarts::integer[], :bodyBytes::integer[], :haveKeys::boolean[])
      as m (id, namespace_id, application, type, timestamp, created_at, trace_id, body_start, body_bytes, has_key)
    where not has_key or id in (select message_id from claimed)
    returning id
  ), delivered as (
    insert into svc.message_delivery (message_id, endpoint_id, namespace_id, status)
    select message_id, endpoint_id, namespace_id, 'waiting'
    from unnest(:deliveryMessages::text[], :deliveryEndpoints::text[], :deliveryNamespaces::text[])
      as d (message_id, endpoint_id, namespace_id)
    where message_id in (select id from added)
  )
  select id from added`;

const KEY = `
  select k.digest, k.message_id as "messageId", k.content, m.timestamp,
    (select count(*) from svc.message_delivery where message_id = k.message_id) as endpoints
  from svc.message_key k left join svc.message m on m.id = k.message_id
  where k.digest = :digest`;
