import {
  ATTEMPT_COLUMNS,
  type CountRow,
  DELIVERY_COLUMNS,
  MESSAGE_COLUMNS,
  type MessageRow,
  messagePage,
  recentAttemptsOf,
  remainingOf,
  windowOf,
  withCounts,
} from '../../../message-rows.ts';
import type {
  AttemptFilter,
  MessageAttemptRecord,
  MessageDeliveryRecord,
  MessageFilter,
  MessagePage,
  MessageRecord,
  RecentAttempts,
  ReplayPage,
  ReplaySelection,
} from '../../../ports/index.ts';
import type { PostgresDatabase } from '../../database.ts';

/** Sorts after every id. */
const LAST = '~';

/** Reads lists of messages. Each query examines a bounded number of rows of one index. */
export class PostgresMessageLists {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  async list(filter: MessageFilter): Promise<MessagePage> {
    const { namespaceId, type, application, endpointId, status, traceId, from = '', before = LAST } = filter;
    const windows = WINDOWS[endpointId === undefined ? 'namespace' : 'endpoint'];
    const own = status === undefined || status === 'succeeded' ? windows.all : windows.open(status);
    const found = await this.#read<{ id: string }>(traceId === undefined ? own : WINDOWS.trace, {
      ...{ namespaceId, endpointId: endpointId ?? null, traceId: traceId ?? null },
      ...{ from, before, limit: windowOf(filter) },
    });
    const examined = found.map(({ id }) => id);
    const rows = await this.#read<MessageRow>(MESSAGES, {
      ...{ ids: examined, namespaceId, limit: filter.limit + 1 },
      ...{ type: type ?? null, application: application ?? null, ...remainingOf(filter) },
    });
    return messagePage(filter, examined, rows, await this.#counts(rows));
  }

  async find(
    namespaceId: string,
    id: string,
  ): Promise<(MessageRecord & { body: Uint8Array; deliveries: MessageDeliveryRecord[] }) | undefined> {
    const [row] = await this.#read<MessageRow & { body: Buffer }>(
      `select ${MESSAGE_COLUMNS}, m.body from svc.message m where m.id = :id and m.namespace_id = :namespaceId`,
      { namespaceId, id },
    );
    if (!row) return undefined;
    const { body, ...message } = row;
    const [counts, deliveries] = await Promise.all([
      this.#counts([message]),
      this.#read<MessageDeliveryRecord>(
        `select ${DELIVERY_COLUMNS} from svc.message_delivery d where d.message_id = :id order by d.endpoint_id`,
        { id },
      ),
    ]);
    return { ...(withCounts([message], counts)[0] as MessageRecord), body, deliveries };
  }

  async attempts(filter: AttemptFilter): Promise<MessageAttemptRecord[]> {
    const { namespaceId, messageId, endpointId, succeeded, after, limit } = filter;
    const outcomes = succeeded === undefined ? [0, 1] : [Number(succeeded)];
    const text =
      messageId === undefined
        ? `select * from (${outcomes.map(ofEndpoint).join(' union all ')}) as found ${NEWEST} limit :limit`
        : OF_MESSAGE;
    const rows = await this.#read<Omit<MessageAttemptRecord, 'succeeded'> & { succeeded: number }>(text, {
      ...{ namespaceId, messageId: messageId ?? null, endpointId: endpointId ?? null, limit },
      succeeded: succeeded === undefined ? null : Number(succeeded),
      startedAt: after?.startedAt ?? Number.MAX_SAFE_INTEGER,
      afterMessage: after?.messageId ?? LAST,
      afterEndpoint: after?.endpointId ?? LAST,
      number: after?.number ?? 0,
    });
    return rows.map((row) => ({ ...row, succeeded: row.succeeded === 1 }));
  }

  recentAttempts(endpointIds: readonly string[], max: number): Promise<RecentAttempts[]> {
    return this.#read(
      `select e.id as "endpointId", ${recentAttemptsOf('svc.message_attempt', 'e.id')}
       from unnest(:ids::text[]) as e (id)`,
      { ids: endpointIds, max },
    );
  }

  async replayable(selection: ReplaySelection): Promise<ReplayPage> {
    const { namespaceId, endpointId, statuses, after, before, endedUntil, limit } = selection;
    const windows = REPLAY_WINDOWS[endpointId === undefined ? 'namespace' : 'endpoint'];
    const found = await this.#read<{ id: string }>(
      statuses.includes('succeeded') ? windows.all : windows.dead,
      { namespaceId, endpointId: endpointId ?? null, after, before, limit },
    );
    const examined = found.map(({ id }) => id);
    const items = await this.#read<ReplayPage['items'][number]>(REPLAYABLE, {
      ...{ ids: examined, namespaceId, endpointId: endpointId ?? null, statuses, endedUntil },
      ...{ type: selection.type ?? null, application: selection.application ?? null },
    });
    return { items, next: examined.length < limit ? null : examined.at(-1)! };
  }

  #counts(rows: readonly MessageRow[]): Promise<CountRow[]> {
    return this.#read(
      `select message_id as "messageId", status, count(*) as count from svc.message_delivery
       where message_id = any(:ids::text[]) group by 1, 2`,
      { ids: rows.map(({ id }) => id) },
    );
  }

  #read<Row extends object>(text: string, values: object): Promise<Row[]> {
    return this.#database.lists.read((sql) => sql<Row>(text, values));
  }
}

const RANGE = 'message_id >= :from and message_id < :before order by message_id desc limit :limit';
const REPLAY_RANGE = 'message_id > :after and message_id < :before order by message_id limit :limit';

/** The ids to examine, newest first. Literal statuses let PostgreSQL use the partial indexes. */
const WINDOWS = {
  trace: `select id from svc.message
    where namespace_id = :namespaceId and trace_id = :traceId and id >= :from and id < :before
    order by id desc limit :limit`,
  namespace: {
    all: `select id from svc.message
      where namespace_id = :namespaceId and id >= :from and id < :before order by id desc limit :limit`,
    open: (status: string) => `select distinct message_id as id from svc.message_delivery
      where namespace_id = :namespaceId and status = '${status}' and message_id >= :from and message_id < :before
      order by id desc limit :limit`,
  },
  endpoint: {
    all: `select message_id as id from svc.message_delivery
      where endpoint_id = :endpointId and namespace_id = :namespaceId and ${RANGE}`,
    open: (status: string) => `select message_id as id from svc.message_delivery
      where endpoint_id = :endpointId and namespace_id = :namespaceId and status = '${status}' and ${RANGE}`,
  },
};

const REPLAY_WINDOWS = {
  namespace: {
    all: `select id from svc.message
      where namespace_id = :namespaceId and id > :after and id < :before order by id limit :limit`,
    dead: `select distinct message_id as id from svc.message_delivery
      where namespace_id = :namespaceId and status = 'dead' and message_id > :after and message_id < :before
      order by id limit :limit`,
  },
  endpoint: {
    all: `select message_id as id from svc.message_delivery
      where endpoint_id = :endpointId and namespace_id = :namespaceId and ${REPLAY_RANGE}`,
    dead: `select message_id as id from svc.message_delivery
      where endpoint_id = :endpointId and namespace_id = :namespaceId and status = 'dead' and ${REPLAY_RANGE}`,
  },
};

const NEWEST = 'order by "startedAt" desc, "messageId" desc, "endpointId" desc, number desc';
const ATTEMPTS = `select ${ATTEMPT_COLUMNS} from svc.message_attempt a join svc.message m on m.id = a.message_id
  where m.namespace_id = :namespaceId`;

/** The newest attempts with an outcome. Lists of both outcomes merge two of these. */
const ofEndpoint = (succeeded: number) => `(${ATTEMPTS}
  and a.endpoint_id = :endpointId and a.succeeded = ${succeeded}
  and (a.started_at, a.message_id, a.number) < (:startedAt, :afterMessage, :number)
  order by a.started_at desc, a.message_id desc, a.number desc limit :limit)`;

const OF_MESSAGE = `${ATTEMPTS}
  and a.message_id = :messageId and (:endpointId::text is null or a.endpoint_id = :endpointId)
  and (:succeeded::smallint is null or a.succeeded = :succeeded)
  and (a.started_at, a.message_id, a.endpoint_id, a.number) < (:startedAt, :afterMessage, :afterEndpoint, :number)
  ${NEWEST} limit :limit`;

const MESSAGES = `
  select ${MESSAGE_COLUMNS} from svc.message m
  where m.id = any(:ids::text[]) and m.namespace_id = :namespaceId and (:type::text is null or m.type = :type)
    and (:application::text is null or m.application = :application)
    and (coalesce(:status::text, :endpointId::text) is null or exists (
      select from svc.message_delivery where message_id = m.id and (:status::text is null or status = :status)
        and (:endpointId::text is null or endpoint_id = :endpointId)))
  order by m.id desc limit :limit`;

const REPLAYABLE = `
  select d.message_id as "messageId", d.endpoint_id as "endpointId", m.application
  from svc.message_delivery d join svc.message m on m.id = d.message_id
  where d.message_id = any(:ids::text[]) and d.namespace_id = :namespaceId
    and (:endpointId::text is null or d.endpoint_id = :endpointId) and (:type::text is null or m.type = :type)
    and (:application::text is null or m.application = :application)
    and d.status = any(:statuses::text[]) and d.ended_at <= :endedUntil
  order by d.message_id, d.endpoint_id`;
