import { DUE_COLUMNS } from '../../../message-rows.ts';
import {
  type AttemptFilter,
  type DueDelivery,
  type EndedAttempt,
  type EndpointWork,
  type FailureChange,
  isUnsent,
  type MessageContent,
  type MessageFilter,
  type MessageStore,
  type NewStoredMessage,
  type ReplaySelection,
  type UnsentEnd,
} from '../../../ports/index.ts';
import type { PostgresDatabase } from '../../database.ts';
import { endAttempts, endUnsent } from './ends.ts';
import { PostgresMessageLists } from './lists.ts';
import { insertMessages, MessagePublishes } from './publishes.ts';

type DueRow = Omit<DueDelivery, 'isReplay'> & { isReplay: number };
const dueOf = (row: DueRow): DueDelivery => ({ ...row, isReplay: row.isReplay === 1 });

/** Messages in PostgreSQL. @spec docs/messages.md */
export class PostgresMessages implements MessageStore {
  readonly #database: PostgresDatabase;
  readonly #publishes: MessagePublishes;
  readonly #lists: PostgresMessageLists;

  constructor(database: PostgresDatabase) {
    this.#database = database;
    this.#publishes = new MessagePublishes(database);
    this.#lists = new PostgresMessageLists(database);
  }

  publish(message: NewStoredMessage) {
    return this.#publishes.publish(message);
  }

  async addTest(message: NewStoredMessage, attempt: EndedAttempt): Promise<void> {
    await this.#database.transact(async (sql) => {
      await insertMessages(sql, [message]);
      await endAttempts(sql, [attempt], []);
    });
  }

  async endAttempts(
    ends: ReadonlyArray<EndedAttempt | UnsentEnd>,
    failures: readonly FailureChange[],
  ): Promise<void> {
    const unsent = ends.filter(isUnsent);
    const attempts = ends.filter((end): end is EndedAttempt => !isUnsent(end));
    if (attempts.length > 0 || failures.length > 0)
      await this.#database.write((sql) => endAttempts(sql, attempts, failures));
    if (unsent.length > 0) await this.#database.write((sql) => endUnsent(sql, unsent));
  }

  work(): Promise<EndpointWork[]> {
    return this.#read(WORK);
  }

  async countUnfinished(max: number): Promise<number> {
    const [row] = await this.#read<{ count: number }>(COUNT_UNFINISHED, { max });
    return row!.count;
  }

  async waiting(endpointId: string, limit: number): Promise<DueDelivery[]> {
    const text = `select ${DUE_COLUMNS} from svc.message_delivery
      where endpoint_id = :endpointId and status = 'waiting' order by message_id limit :limit`;
    return (await this.#read<DueRow>(text, { endpointId, limit })).map(dueOf);
  }

  async retries(endpointId: string, now: number, limit: number): Promise<DueDelivery[]> {
    const text = `select ${DUE_COLUMNS} from svc.message_delivery
      where endpoint_id = :endpointId and status = 'retrying' and next_attempt_at <= :now
      order by next_attempt_at limit :limit`;
    return (await this.#read<DueRow>(text, { endpointId, now, limit })).map(dueOf);
  }

  async nextRetryAt(endpointId: string, after: number): Promise<number | null> {
    const text = `select min(next_attempt_at) as at from svc.message_delivery
      where endpoint_id = :endpointId and status = 'retrying' and next_attempt_at > :after`;
    const [row] = await this.#read<{ at: number | null }>(text, { endpointId, after });
    return row!.at;
  }

  contents(ids: readonly string[], maxBytes: number): Promise<MessageContent[]> {
    return this.#read(CONTENTS, { ids, maxBytes });
  }

  async endUnfinished(
    endpointId: string,
    end: { status: 'dead' | 'cancelled'; error: string; at: number; limit: number },
  ): Promise<number> {
    const rows = await this.#database.write((sql) =>
      sql<{ id: string }>(END_UNFINISHED, { ...end, endpointId }),
    );
    return rows.length;
  }

  list(filter: MessageFilter) {
    return this.#lists.list(filter);
  }

  find(namespaceId: string, id: string) {
    return this.#lists.find(namespaceId, id);
  }

  attempts(filter: AttemptFilter) {
    return this.#lists.attempts(filter);
  }

  recentAttempts(endpointIds: readonly string[], max: number) {
    return this.#lists.recentAttempts(endpointIds, max);
  }

  replayable(selection: ReplaySelection) {
    return this.#lists.replayable(selection);
  }

  async replay(
    namespaceId: string,
    deliveries: ReadonlyArray<{ messageId: string; endpointId: string }>,
    { endedUntil, add }: { endedUntil: number; add: boolean },
  ): Promise<DueDelivery[]> {
    const values = {
      ...{ namespaceId, endedUntil, add },
      messageIds: deliveries.map(({ messageId }) => messageId),
      endpointIds: deliveries.map(({ endpointId }) => endpointId),
    };
    const rows = await this.#database.write((sql) => sql<DueRow>(REPLAY, values));
    return rows.map(dueOf);
  }

  async prune(
    before: string,
    after: string,
    limit: number,
  ): Promise<{ pruned: number; next: string | null }> {
    const rows = await this.#database.write((sql) =>
      sql<{ id: string; isOpen: boolean }>(PRUNE, { before, after, limit }),
    );
    return {
      pruned: rows.filter(({ isOpen }) => !isOpen).length,
      next: rows.length < limit ? null : rows.at(-1)!.id,
    };
  }

  async pruneKeys(now: number, limit: number): Promise<number> {
    const text = `delete from svc.message_key where digest = any(array(
      select digest from svc.message_key where expires_at <= :now limit :limit)) returning 1`;
    return (await this.#database.write((sql) => sql(text, { now, limit }))).length;
  }

  #read<Row extends object>(text: string, values: object = {}): Promise<Row[]> {
    return this.#database.read((sql) => sql<Row>(text, values));
  }
}

/** Endpoints with unfinished deliveries, found by one look-up per endpoint. */
const WORK = `
  with recursive e (id) as (
    select min(endpoint_id) from svc.message_delivery where status <> 'succeeded'
    union all
    select (select min(endpoint_id) from svc.message_delivery where status <> 'succeeded' and endpoint_id > e.id)
    from e where e.id is not null
  ), found as (
    select id as "endpointId",
      (select min(message_id) from svc.message_delivery where endpoint_id = e.id and status = 'waiting') as "oldestWaiting",
      (select min(next_attempt_at) from svc.message_delivery where endpoint_id = e.id and status = 'retrying') as "nextRetryAt"
    from e where id is not null
  )
  select * from found where "oldestWaiting" is not null or "nextRetryAt" is not null`;

/** Reads the unfinished deliveries of one namespace after the other, so that dead ones are skipped. */
const COUNT_UNFINISHED = `
  with recursive n (id) as (
    select min(namespace_id) from svc.message_delivery where status <> 'succeeded'
    union all
    select (select min(namespace_id) from svc.message_delivery where status <> 'succeeded' and namespace_id > n.id)
    from n where n.id is not null
  )
  select count(*) from (
    select from n cross join lateral (
      select from svc.message_delivery
      where namespace_id = n.id and status in ('waiting', 'retrying') and status <> 'succeeded' limit :max) as d
    limit :max) as u`;

const CONTENTS = `
  select id, application, type, created_at as "createdAt", trace_id as "traceId", body from svc.message
  where id in (
    select id from (
      select id, body_bytes, sum(body_bytes) over (order by place) as total
      from unnest(:ids::text[]) with ordinality as c (message_id, place) join svc.message on id = message_id) as sized
    where total <= :maxBytes or total = body_bytes)`;

const END_UNFINISHED = `
  update svc.message_delivery set status = :status, last_error = :error, next_attempt_at = null, ended_at = :at
  where endpoint_id = :endpointId and message_id = any(array(
    select message_id from svc.message_delivery
    where endpoint_id = :endpointId and status in ('waiting', 'retrying') and status <> 'succeeded'
    limit :limit for update))
  returning message_id as id`;

const REPLAY = `
  with chosen as materialized (
    select * from unnest(:messageIds::text[], :endpointIds::text[]) as c (message_id, endpoint_id)
  ), again as (
    update svc.message_delivery d
    set status = 'waiting', tries = 0, is_replay = 1, next_attempt_at = null, ended_at = null
    from chosen c
    where d.message_id = c.message_id and d.endpoint_id = c.endpoint_id and d.namespace_id = :namespaceId
      and d.status not in ('waiting', 'retrying') and d.ended_at <= :endedUntil
    returning d.*
  ), added as (
    insert into svc.message_delivery (message_id, endpoint_id, namespace_id, status, is_replay)
    select c.message_id, c.endpoint_id, m.namespace_id, 'waiting', 1
    from chosen c join svc.message m on m.id = c.message_id and m.namespace_id = :namespaceId
    where :add::boolean
    on conflict do nothing returning *
  )
  select ${DUE_COLUMNS} from again union all select ${DUE_COLUMNS} from added`;

const PRUNE = `
  with old as materialized (
    select id, exists (
      select from svc.message_delivery where message_id = m.id and status in ('waiting', 'retrying')) as is_open
    from svc.message m where id > :after and id < :before order by id limit :limit
  ), done as (
    select id from old where not is_open
  ), attempts as (
    delete from svc.message_attempt where message_id in (select id from done)
  ), deliveries as (
    delete from svc.message_delivery where message_id in (select id from done)
  ), messages as (
    delete from svc.message where id in (select id from done)
  )
  select id, is_open as "isOpen" from old order by id`;
