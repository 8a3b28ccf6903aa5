import type { NewQueueItem, QueueKey } from '../../../ports/index.ts';
import { BatchWriter } from '../../batch-writer.ts';
import type { PostgresDatabase } from '../../database.ts';

const MAX_ITEMS = 256;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_RUNNING = 2;
/** Size of the columns of an item without its headers and body. */
const ROW_BYTES = 200;

const ID = 'select queue_id as "queueId" from svc.queue where namespace_id = :namespaceId and name = :queue';
const ADD = `insert into svc.queue (namespace_id, name) values (:namespaceId, :queue) on conflict do nothing`;
const PUT = `select svc.put_queue_items(:queueId, :ids::text[], :orderKeys::text[], :deliveryIds::text[],
  :received::bigint[], :delays::bigint[], :headers::text[], :bodies::bytea[], :now) as id`;

/** Adds items in batches, one writer per queue. */
export class QueuePuts {
  readonly #database: PostgresDatabase;
  readonly #now: () => number | null;
  readonly #writers = new Map<number, BatchWriter<NewQueueItem, boolean>>();
  /** Queues are never deleted, so their ids stay valid. */
  readonly #ids = new Map<string, number>();

  constructor(database: PostgresDatabase, now: () => number | null) {
    this.#database = database;
    this.#now = now;
  }

  async add(item: NewQueueItem): Promise<boolean> {
    const queueId = (await this.idOf(item)) ?? (await this.#create(item));
    let writer = this.#writers.get(queueId);
    if (!writer) {
      writer = new BatchWriter({
        write: (items) => this.#write(queueId, items),
        sizeOf: ({ headers, body }) => ROW_BYTES + headers.length + body.length,
        maxRunning: MAX_RUNNING,
        maxItems: MAX_ITEMS,
        maxBytes: MAX_BYTES,
      });
      this.#writers.set(queueId, writer);
    }
    return writer.add(item);
  }

  /** Returns the id of a queue, or undefined for a queue that never had an item. */
  async idOf({ namespaceId, queue }: QueueKey): Promise<number | undefined> {
    const name = JSON.stringify([namespaceId, queue]);
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const [row] = await this.#database.read((sql) => sql<{ queueId: number }>(ID, { namespaceId, queue }));
    if (row) this.#ids.set(name, row.queueId);
    return row?.queueId;
  }

  async #create(key: QueueKey): Promise<number> {
    const { namespaceId, queue } = key;
    await this.#database.write((sql) => sql(ADD, { namespaceId, queue }));
    return (await this.idOf(key))!;
  }

  async #write(queueId: number, items: readonly NewQueueItem[]): Promise<boolean[]> {
    const values = {
      queueId,
      ids: items.map(({ id }) => id),
      orderKeys: items.map(({ orderKey }) => orderKey),
      deliveryIds: items.map(({ deliveryId }) => deliveryId),
      received: items.map(({ receivedAt }) => receivedAt),
      delays: items.map(({ delayMs = 0 }) => delayMs),
      headers: items.map(({ headers }) => headers),
      bodies: items.map(({ body }) => Buffer.from(body.buffer, body.byteOffset, body.byteLength)),
      now: this.#now(),
    };
    const rows = await this.#database.write((sql) => sql<{ id: string }>(PUT, values, 'put queue items'));
    const added = new Set(rows.map(({ id }) => id));
    // Of two items with the same id in a batch, only the first one was added.
    return items.map(({ id }) => added.delete(id));
  }
}
