import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  LeaseChange,
  LeasedItem,
  LeaseRequest,
  LeaseResult,
  NewQueueItem,
  QueueCounts,
  QueueCountsOf,
  QueueItemContent,
  QueueItemFilter,
  QueueItemPage,
  QueueItemRecord,
  QueueKey,
  QueueLimits,
  QueueSettingsRecord,
  QueueStore,
  QueueUsage,
} from '../../../ports/index.ts';
import { QUEUE_ITEM_BYTES } from '../../../ports/queues.ts';
import { pageOfQueue, type QueueItemRow, recordOf } from '../../../queue-records.ts';
import { EXPIRED, leaseIdOf, parseLeaseId, QUEUE_STATE, STATES_OF } from '../../../queue-rules.ts';
import type { PostgresDatabase } from '../../database.ts';
import type { PostgresFeed } from '../feed.ts';
import { LeaseBatches } from './lease-batches.ts';
import { QueuePuts } from './puts.ts';

const COLUMNS = `position, id, state, due_at as "dueAt", attempt, order_key as "orderKey", delivery_id as "deliveryId",
  received_at as "receivedAt", last_error as "lastError", body_bytes as "bodyBytes"`;

/** Time at which the oldest waiting item was received. Of the delayed items, only the first one due counts. */
const OLDEST = `(
  select min(received_at) from generate_series(0, 2) as s (state), lateral (
    select received_at from svc.queue_item where queue_id = q.queue_id and state = s.state order by due_at, position limit 1
  ) as first)`;
const COUNTS = `
  select namespace_id as "namespaceId", name as queue, waiting, leased, dead, ${OLDEST} as "oldestReceivedAt"
  from svc.queue q, lateral (
    select count(*) filter (where state < 3) as waiting, count(*) filter (where state = 3) as leased,
      count(*) filter (where state = 4) as dead
    from svc.queue_item where queue_id = q.queue_id and state between 0 and 4
  ) as c`;

/** Queues in PostgreSQL. Times are those of the database. @spec docs/queues.md */
export class PostgresQueues implements QueueStore {
  readonly #database: PostgresDatabase;
  readonly #feed: PostgresFeed;
  readonly #clock: Clock | undefined;
  readonly #puts: QueuePuts;
  readonly #batches: LeaseBatches;

  /** `clock` replaces the clock of the database in tests. */
  constructor(database: PostgresDatabase, feed: PostgresFeed, clock?: Clock) {
    this.#database = database;
    this.#feed = feed;
    this.#clock = clock;
    this.#puts = new QueuePuts(database, () => this.#now());
    this.#batches = new LeaseBatches(database, () => this.#now());
  }

  put(item: NewQueueItem): Promise<boolean> {
    return this.#puts.add(item);
  }

  async lease(request: LeaseRequest): Promise<LeasedItem[]> {
    const queueId = await this.#puts.idOf(request);
    if (queueId === undefined) return [];
    return this.#batches.lease(queueId, request);
  }

  async settle(
    key: QueueKey,
    leaseIds: readonly string[],
    change: LeaseChange,
    { maxAttempts }: QueueLimits,
  ): Promise<LeaseResult[]> {
    const queueId = await this.#puts.idOf(key);
    const leases = leaseIds.map(parseLeaseId);
    const known = leases.filter((lease) => lease !== undefined);
    if (queueId === undefined || known.length === 0) return leaseIds.map(() => LOST);
    const results = await this.#batches.settle(queueId, { leases: known, change, maxAttempts });
    return leases.map((lease) => (lease && results.get(leaseIdOf(lease.position, lease.token))) ?? LOST);
  }

  async due(keys: readonly QueueKey[]): Promise<QueueKey[]> {
    return this.#read<QueueKey>(DUE, namesOf(keys));
  }

  async expire(key: QueueKey, { maxAttempts }: QueueLimits): Promise<number> {
    const queueId = await this.#puts.idOf(key);
    if (queueId === undefined) return 0;
    const text = 'select svc.expire_queue_leases(:queueId, :maxAttempts, :error, :now) as ended';
    const [row] = await this.#write<{ ended: number }>(text, { queueId, maxAttempts, error: EXPIRED });
    return row!.ended;
  }

  counts(namespaceId?: string): Promise<QueueCountsOf[]> {
    const text = `${COUNTS} where :namespaceId::text is null or namespace_id = :namespaceId order by namespace_id, name`;
    return this.#database.lists.read((sql) => sql(text, { namespaceId: namespaceId ?? null }));
  }

  async count({ namespaceId, queue }: QueueKey): Promise<QueueCounts | undefined> {
    const text = `${COUNTS} where namespace_id = :namespaceId and name = :queue`;
    const [row] = await this.#database.lists.read((sql) => sql<QueueCountsOf>(text, { namespaceId, queue }));
    return row;
  }

  async usage(namespaceId: string): Promise<QueueUsage> {
    const [usage] = await this.#database.lists.read((sql) => sql<QueueUsage>(USAGE, { namespaceId }));
    return usage!;
  }

  async list(key: QueueKey, { status, after, limit }: QueueItemFilter): Promise<QueueItemPage> {
    const queueId = await this.#puts.idOf(key);
    if (queueId === undefined) return { items: [], next: null };
    const [first, lastState] = status ? STATES_OF[status] : [QUEUE_STATE.ready, QUEUE_STATE.acked];
    const start = after ?? { state: first, dueAt: -1, position: 0 };
    const values = { queueId, ...start, lastState, limit: limit + 1 };
    const rows = await this.#database.lists.read((sql) => sql<QueueItemRow>(LIST, values));
    return pageOfQueue(key, rows, limit);
  }

  async find(key: QueueKey, id: string): Promise<(QueueItemRecord & Partial<QueueItemContent>) | undefined> {
    const queueId = await this.#puts.idOf(key);
    if (queueId === undefined) return undefined;
    const text = `select ${COLUMNS}, headers, body from svc.queue_item where queue_id = :queueId and id = :id`;
    const [row] = await this.#read<QueueItemRow & { headers: string | null; body: Buffer }>(text, {
      queueId,
      id,
    });
    if (!row) return undefined;
    const { headers, body } = row;
    return headers === null ? recordOf(key, row) : { ...recordOf(key, row), headers, body };
  }

  async lastDeadAt(key: QueueKey): Promise<number> {
    const queueId = (await this.#puts.idOf(key)) ?? null;
    const text = `select coalesce(max(due_at), 0) as last from svc.queue_item
      where queue_id = :queueId and state = ${QUEUE_STATE.dead}`;
    const [row] = await this.#read<{ last: number }>(text, { queueId });
    return row!.last;
  }

  async retry(key: QueueKey, ids: readonly string[]): Promise<string[]> {
    const queueId = await this.#puts.idOf(key);
    if (queueId === undefined) return [];
    const text = 'select svc.retry_queue_items(:queueId, :ids::text[], :now) as id';
    const rows = await this.#write<{ id: string }>(text, { queueId, ids });
    return rows.map(({ id }) => id);
  }

  async remove(key: QueueKey, ids: readonly string[]): Promise<string[]> {
    const queueId = await this.#puts.idOf(key);
    if (queueId === undefined) return [];
    const text = 'select position from svc.queue_item where queue_id = :queueId and id = any(:ids::text[])';
    const rows = await this.#read<{ position: number }>(text, { queueId, ids });
    return this.#remove(queueId, rows);
  }

  async purge(key: QueueKey, status: 'waiting' | 'dead', limit: number): Promise<number> {
    const queueId = await this.#puts.idOf(key);
    if (queueId === undefined) return 0;
    const [first, lastState] = STATES_OF[status];
    const start = { state: first, dueAt: -1, position: 0 };
    const rows = await this.#read<QueueItemRow>(LIST, { queueId, ...start, lastState, limit });
    return (await this.#remove(queueId, rows)).length;
  }

  async prune(before: { ackedBefore: number; deadBefore: number; limit: number }): Promise<number> {
    const [row] = await this.#write<{ pruned: number }>(PRUNE, before);
    return row!.pruned;
  }

  settings(): Promise<QueueSettingsRecord[]> {
    return this.#read('select namespace_id as "namespaceId", name as queue, settings from svc.queue_setting');
  }

  async configure(key: QueueKey, settings: string | null): Promise<void> {
    const { namespaceId, queue: name } = key;
    await this.#database.transaction(async (query) => {
      if (settings === null)
        await query
          .deleteFrom('queueSetting')
          .where('namespaceId', '=', namespaceId)
          .where('name', '=', name)
          .execute();
      else
        await query
          .insertInto('queueSetting')
          .values({ namespaceId, name, settings })
          .onConflict((conflict) => conflict.columns(['namespaceId', 'name']).doUpdateSet({ settings }))
          .execute();
      await this.#feed.add(query, 'queues', JSON.stringify([namespaceId, name]));
    });
  }

  async #remove(queueId: number, rows: ReadonlyArray<{ position: number }>): Promise<string[]> {
    const text = 'select svc.remove_queue_items(:queueId, :positions::bigint[], :now) as id';
    const removed = await this.#write<{ id: string }>(text, {
      queueId,
      positions: rows.map(({ position }) => position),
    });
    return removed.map(({ id }) => id);
  }

  #write<Row extends object>(text: string, values: object, prepareAs?: string): Promise<Row[]> {
    return this.#database.write((sql) => sql<Row>(text, { ...values, now: this.#now() }, prepareAs));
  }

  #read<Row extends object>(text: string, values: object = {}): Promise<Row[]> {
    return this.#database.read((sql) => sql<Row>(text, { ...values, now: this.#now() }));
  }

  #now(): number | null {
    return this.#clock?.now() ?? null;
  }
}

const LOST: LeaseResult = { outcome: 'lost', until: null };

function namesOf(keys: readonly QueueKey[]): object {
  return {
    namespaces: keys.map(({ namespaceId }) => namespaceId),
    names: keys.map(({ queue }) => queue),
  };
}

const USAGE = `
  select count(distinct q.queue_id) as queues,
    coalesce(sum(i.body_bytes + coalesce(octet_length(i.headers), 0) + ${QUEUE_ITEM_BYTES}), 0)::bigint as bytes
  from svc.queue q left join svc.queue_item i on i.queue_id = q.queue_id and i.state between 0 and 4
  where q.namespace_id = :namespaceId`;

const LIST = `select ${COLUMNS} from svc.queue_item
  where queue_id = :queueId and (state, due_at, position) > (:state, :dueAt, :position) and state <= :lastState
  order by state, due_at, position limit :limit`;

const dueIn = (state: number): string => `exists (
  select from svc.queue_item where queue_id = q.queue_id and state = ${state}
    and due_at <= (select coalesce(:now::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)))`;
const DUE = `
  select namespace_id as "namespaceId", name as queue from svc.queue q
  where (namespace_id, name) in (select * from unnest(:namespaces::text[], :names::text[]))
    and (exists (select from svc.queue_item where queue_id = q.queue_id and state = 0)
      or ${dueIn(QUEUE_STATE.delayed)} or ${dueIn(QUEUE_STATE.leased)})`;

const PRUNE = `
  with old as (
    select i.position from svc.queue q, lateral (
      select position from svc.queue_item
      where queue_id = q.queue_id
        and (state = ${QUEUE_STATE.acked} and due_at < :ackedBefore or state = ${QUEUE_STATE.dead} and due_at < :deadBefore)
      limit :limit for update skip locked
    ) as i limit :limit
  ), gone as (
    delete from svc.queue_item where position in (select position from old) returning 1
  )
  select count(*) as pruned from gone`;
