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
import type { Database } from '../../database.ts';

/** Sorts after every id. */
const LAST = '~';
const OPEN = "status <> 'succeeded'";

interface WindowValues {
  namespaceId: string;
  endpointId: string | null;
  status: string | null;
  traceId: string | null;
  from: string;
  before: string;
  limit: number;
}

/** Reads lists of messages. Each query examines a bounded number of rows of one index. */
export class MessageLists {
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Database) {
    this.#sql = statements(db);
  }

  list(filter: MessageFilter): MessagePage {
    const { namespaceId, type, application, endpointId, status, traceId, from = '', before = LAST } = filter;
    const examined = this.#window(filter).all({
      ...{ namespaceId, endpointId: endpointId ?? null, status: status ?? null, traceId: traceId ?? null },
      ...{ from, before, limit: windowOf(filter) },
    });
    const rows = this.#sql.messages.all({
      ...{ ids: JSON.stringify(examined), namespaceId, limit: filter.limit + 1 },
      ...{ type: type ?? null, application: application ?? null, ...remainingOf(filter) },
    });
    return messagePage(filter, examined, rows, this.#counts(rows));
  }

  find(namespaceId: string, id: string) {
    const row = this.#sql.find.get({ namespaceId, id });
    if (!row) return undefined;
    const { body, ...message } = row;
    const [found] = withCounts([message], this.#counts([message]));
    return { ...(found as MessageRecord), body, deliveries: this.#sql.deliveries.all({ id }) };
  }

  attempts({
    namespaceId,
    messageId,
    endpointId,
    succeeded,
    after,
    limit,
  }: AttemptFilter): MessageAttemptRecord[] {
    const values = {
      ...{ namespaceId, messageId: messageId ?? null, endpointId: endpointId ?? null, limit },
      succeeded: succeeded === undefined ? null : Number(succeeded),
      startedAt: after?.startedAt ?? Number.MAX_SAFE_INTEGER,
      afterMessage: after?.messageId ?? LAST,
      afterEndpoint: after?.endpointId ?? LAST,
      number: after?.number ?? 0,
    };
    const { attemptsOfMessage, allOfEndpoint, someOfEndpoint } = this.#sql;
    const ofEndpoint = succeeded === undefined ? allOfEndpoint : someOfEndpoint;
    const rows = (messageId === undefined ? ofEndpoint : attemptsOfMessage).all(values);
    return rows.map((row) => ({ ...row, succeeded: row.succeeded === 1 }));
  }

  recentAttempts(endpointIds: readonly string[], max: number): RecentAttempts[] {
    return this.#sql.recentAttempts.all({ ids: JSON.stringify(endpointIds), max });
  }

  replayable(selection: ReplaySelection): ReplayPage {
    const { namespaceId, endpointId, statuses, after, before, endedUntil, limit } = selection;
    const { type = null, application = null } = selection;
    const onlyOpen = !statuses.includes('succeeded');
    const window = this.#sql.replayWindows[endpointId === undefined ? 'namespace' : 'endpoint'];
    const values = { namespaceId, endpointId: endpointId ?? null, after, before, limit };
    const examined = (onlyOpen ? window.open : window.all).all({
      ...values,
      statuses: JSON.stringify(statuses),
    });
    const items = this.#sql.replayable.all({
      ...{ ids: JSON.stringify(examined), namespaceId, endpointId: endpointId ?? null, type, application },
      ...{ statuses: JSON.stringify(statuses), endedUntil },
    });
    return { items, next: examined.length < limit ? null : examined.at(-1)! };
  }

  #window({ status, endpointId, traceId }: MessageFilter) {
    if (traceId !== undefined) return this.#sql.windows.trace;
    const windows = this.#sql.windows[endpointId === undefined ? 'namespace' : 'endpoint'];
    return status === undefined || status === 'succeeded' ? windows.all : windows.open;
  }

  #counts(rows: readonly MessageRow[]): CountRow[] {
    return this.#sql.counts.all(JSON.stringify(rows.map(({ id }) => id)));
  }
}

interface AttemptValues {
  namespaceId: string;
  messageId: string | null;
  endpointId: string | null;
  succeeded: number | null;
  startedAt: number;
  afterMessage: string;
  afterEndpoint: string;
  number: number;
  limit: number;
}
interface ReplayValues {
  namespaceId: string;
  endpointId: string | null;
  statuses: string;
  after: string;
  before: string;
  limit: number;
}

function statements(db: Database) {
  return { ...windowsOf(db), ...messagesOf(db), ...attemptsOf(db), ...replaysOf(db) };
}

function windowsOf(db: Database) {
  const window = (text: string) => db.prepare<[WindowValues], string>(text).pluck();
  const range = 'message_id >= :from and message_id < :before order by message_id desc limit :limit';
  return {
    windows: {
      trace: window(`select id from message
        where namespace_id = :namespaceId and trace_id = :traceId and id >= :from and id < :before
        order by id desc limit :limit`),
      namespace: {
        all: window(`select id from message
          where namespace_id = :namespaceId and id >= :from and id < :before order by id desc limit :limit`),
        open: window(`select distinct message_id from message_delivery
          where namespace_id = :namespaceId and status = :status and ${OPEN} and ${range}`),
      },
      endpoint: {
        all: window(`select message_id from message_delivery where endpoint_id = :endpointId and ${range}`),
        open: window(`select message_id from message_delivery
          where endpoint_id = :endpointId and status = :status and ${OPEN} and ${range}`),
      },
    },
  };
}

function messagesOf(db: Database) {
  return {
    messages: db.prepare<
      [
        {
          ids: string;
          namespaceId: string;
          type: string | null;
          application: string | null;
          status: string | null;
          endpointId: string | null;
          limit: number;
        },
      ],
      MessageRow
    >(`
      select ${MESSAGE_COLUMNS} from message m
      where m.id in (select value from json_each(:ids)) and m.namespace_id = :namespaceId
        and (:type is null or m.type = :type) and (:application is null or m.application = :application)
        and (coalesce(:status, :endpointId) is null or exists (
          select 1 from message_delivery where message_id = m.id and (:status is null or status = :status)
            and (:endpointId is null or endpoint_id = :endpointId)))
      order by m.id desc limit :limit`),
    counts: db.prepare<[string], CountRow>(`
      select message_id as messageId, status, count(*) as count from message_delivery
      where message_id in (select value from json_each(?)) group by 1, 2`),
    find: db.prepare<[{ namespaceId: string; id: string }], MessageRow & { body: Buffer }>(
      `select ${MESSAGE_COLUMNS}, m.body from message m where m.id = :id and m.namespace_id = :namespaceId`,
    ),
    deliveries: db.prepare<[{ id: string }], MessageDeliveryRecord>(
      `select ${DELIVERY_COLUMNS} from message_delivery d where d.message_id = :id order by d.endpoint_id`,
    ),
  };
}

function attemptsOf(db: Database) {
  const attempts = (...wheres: string[]) =>
    db.prepare<[AttemptValues], Omit<MessageAttemptRecord, 'succeeded'> & { succeeded: number }>(`
      ${wheres
        .map(
          (where) => `select ${ATTEMPT_COLUMNS} from message_attempt a join message m on m.id = a.message_id
            where ${where} and m.namespace_id = :namespaceId`,
        )
        .join(' union all ')}
      order by "startedAt" desc, "messageId" desc, "endpointId" desc, number desc limit :limit`);
  const ofEndpoint = (succeeded: string) => `a.endpoint_id = :endpointId and a.succeeded = ${succeeded}
    and (a.started_at, a.message_id, a.number) < (:startedAt, :afterMessage, :number)`;
  return {
    attemptsOfMessage:
      attempts(`a.message_id = :messageId and (:endpointId is null or a.endpoint_id = :endpointId)
      and (:succeeded is null or a.succeeded = :succeeded)
      and (a.started_at, a.message_id, a.endpoint_id, a.number) < (:startedAt, :afterMessage, :afterEndpoint, :number)`),
    allOfEndpoint: attempts(ofEndpoint('0'), ofEndpoint('1')),
    someOfEndpoint: attempts(ofEndpoint(':succeeded')),
    recentAttempts: db.prepare<[{ ids: string; max: number }], RecentAttempts>(
      `select e.value as endpointId, ${recentAttemptsOf('message_attempt', 'e.value')} from json_each(:ids) e`,
    ),
  };
}

function replaysOf(db: Database) {
  const replayWindow = (text: string) => db.prepare<[ReplayValues], string>(text).pluck();
  const replayRange = 'message_id > :after and message_id < :before order by message_id limit :limit';
  return {
    replayWindows: {
      namespace: {
        all: replayWindow(`select id from message
          where namespace_id = :namespaceId and id > :after and id < :before order by id limit :limit`),
        open: replayWindow(`select distinct message_id from message_delivery
          where namespace_id = :namespaceId and status = 'dead' and ${OPEN} and ${replayRange}`),
      },
      endpoint: {
        all: replayWindow(
          `select message_id from message_delivery where endpoint_id = :endpointId and ${replayRange}`,
        ),
        open: replayWindow(`select message_id from message_delivery
          where endpoint_id = :endpointId and status = 'dead' and ${OPEN} and ${replayRange}`),
      },
    },
    replayable: db.prepare<
      [
        {
          ids: string;
          namespaceId: string;
          endpointId: string | null;
          type: string | null;
          application: string | null;
          statuses: string;
          endedUntil: number;
        },
      ],
      { messageId: string; endpointId: string; application: string | null }
    >(`
      select d.message_id as messageId, d.endpoint_id as endpointId, m.application
      from message_delivery d join message m on m.id = d.message_id
      where d.message_id in (select value from json_each(:ids)) and d.namespace_id = :namespaceId
        and (:endpointId is null or d.endpoint_id = :endpointId) and (:type is null or m.type = :type)
        and (:application is null or m.application = :application)
        and d.status in (select value from json_each(:statuses)) and d.ended_at <= :endedUntil
      order by d.message_id, d.endpoint_id`),
  };
}
