import { DUE_COLUMNS } from '../../../message-rows.ts';
import type {
  DeadDelivery,
  DueDelivery,
  EndedAttempt,
  EndpointWork,
  FailureChange,
  MessageContent,
  MessageStore,
  NewStoredMessage,
  StoredMessageResult,
} from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import { MessageLists } from './lists.ts';

type DueRow = Omit<DueDelivery, 'isReplay'> & { isReplay: number };
const dueOf = (row: DueRow): DueDelivery => ({ ...row, isReplay: row.isReplay === 1 });

interface KeyRow {
  messageId: string;
  content: Buffer;
  timestamp: number | null;
  endpoints: number;
}

type MessageValues = Omit<NewStoredMessage, 'endpointIds' | 'key'> & { bodyBytes: number };
type AttemptValues = Omit<EndedAttempt, 'succeeded'> & { succeeded: number };
interface DeliveryValues {
  messageId: string;
  endpointId: string;
  namespaceId: string;
}

/** The condition of the partial indexes. SQLite uses them only for queries that contain it. */
const OPEN = "status <> 'succeeded'";

/** Endpoints with unfinished deliveries, found by one look-up per endpoint. */
const WORK = `
  with recursive e (id) as (
    select min(endpoint_id) from message_delivery where ${OPEN}
    union all
    select (select min(endpoint_id) from message_delivery where ${OPEN} and endpoint_id > e.id) from e where e.id is not null
  ), found as (
    select id as endpointId,
      (select min(message_id) from message_delivery where endpoint_id = e.id and status = 'waiting' and ${OPEN}) as oldestWaiting,
      (select min(next_attempt_at) from message_delivery where endpoint_id = e.id and status = 'retrying') as nextRetryAt
    from e where id is not null
  )
  select * from found where oldestWaiting is not null or nextRetryAt is not null`;

/** Messages in `svc.db`. Concurrent calls share a transaction. @spec docs/messages.md */
export function sqliteMessages(db: Database): MessageStore {
  const sql = statements(db);
  const lists = new MessageLists(db);

  /** Returns the earlier message with the same key. */
  function earlier({ createdAt, key }: NewStoredMessage): StoredMessageResult | undefined {
    const known = key && (sql.key.get({ digest: key.digest, now: createdAt }) as KeyRow | undefined);
    if (!known) return undefined;
    const { messageId: id, timestamp, endpoints } = known;
    const outcome = Buffer.compare(known.content, key.content) === 0 ? 'duplicate' : 'conflict';
    return { outcome, id, timestamp: timestamp ?? 0, endpoints };
  }

  function insert(message: NewStoredMessage): void {
    const { endpointIds, key, body, ...row } = message;
    sql.addMessage.run({ ...row, bodyBytes: body.byteLength, body });
    const { id: messageId, namespaceId } = message;
    for (const endpointId of endpointIds) sql.addDelivery.run({ messageId, endpointId, namespaceId });
    if (key) sql.setKey.run({ ...key, messageId });
  }

  function end(attempt: EndedAttempt): void {
    sql.addAttempt.run({ ...attempt, succeeded: Number(attempt.succeeded) });
    sql.end.run({ ...attempt, succeeded: Number(attempt.succeeded) });
  }

  return {
    publish: (message) =>
      db.write(() => {
        const known = earlier(message);
        if (known) return known;
        insert(message);
        const { id, timestamp, endpointIds } = message;
        return { outcome: 'stored' as const, id, timestamp, endpoints: endpointIds.length };
      }),
    addTest: (message, attempt) =>
      db.write(() => {
        insert(message);
        end(attempt);
      }),
    endAttempts: (ends, failures) =>
      db.write(() => {
        for (const ended of ends) end(ended);
        for (const change of failures) sql.setFailing.run(change);
      }),
    work: () => db.read(() => sql.work.all()),
    countUnfinished: (max) => db.read(() => sql.countUnfinished.get({ max })!),
    waiting: (endpointId, limit) => db.read(() => sql.waiting.all({ endpointId, limit }).map(dueOf)),
    retries: (endpointId, now, limit) =>
      db.read(() => sql.retries.all({ endpointId, now, limit }).map(dueOf)),
    nextRetryAt: (endpointId, after) => db.read(() => sql.nextRetryAt.get({ endpointId, after }) ?? null),
    contents: (ids) => db.read(() => sql.contents.all(JSON.stringify(ids))),
    endUnfinished: (endpointId, { limit, ...end }) =>
      db.write(() => {
        const rows = sql.unfinished.all({ endpointId, limit });
        for (const messageId of rows) sql.endUnfinished.run({ ...end, endpointId, messageId });
        return rows.length;
      }),
    list: (filter) => db.read(() => lists.list(filter)),
    find: (namespaceId, id) => db.read(() => lists.find(namespaceId, id)),
    attempts: (filter) => db.read(() => lists.attempts(filter)),
    recentAttempts: (ids, max) => db.read(() => lists.recentAttempts(ids, max)),
    replayable: (selection) => db.read(() => lists.replayable(selection)),
    replay: (namespaceId, deliveries, { endedUntil, add }) =>
      db.write(() => {
        const changed: DueDelivery[] = [];
        for (const delivery of deliveries) {
          const values = { ...delivery, namespaceId };
          const row: DueRow | undefined =
            sql.replay.get({ ...values, endedUntil }) ??
            (add && sql.isMessage.get({ namespaceId, id: delivery.messageId })
              ? sql.addReplay.get(values)
              : undefined);
          if (row) changed.push(dueOf(row));
        }
        return changed;
      }),
    deadSince: (since, limit) => db.read(() => sql.deadSince.all({ since, limit })),
    prune: (before, after, limit) =>
      db.write(() => {
        const examined = sql.old.all({ before, after, limit });
        const done = examined.filter(({ isOpen }) => isOpen === 0);
        for (const { id } of done) for (const remove of sql.remove) remove.run({ id });
        return { pruned: done.length, next: examined.length < limit ? null : examined.at(-1)!.id };
      }),
    pruneKeys: (now, limit) => db.write(() => sql.pruneKeys.run({ now, limit }).changes),
  };
}

function statements(db: Database) {
  return { ...publishing(db), ...dispatching(db), ...housekeeping(db) };
}

function publishing(db: Database) {
  return {
    key: db.prepare<[{ digest: Uint8Array; now: number }], KeyRow>(`
      select k.message_id as messageId, k.content, m.timestamp,
        (select count(*) from message_delivery where message_id = k.message_id) as endpoints
      from message_key k left join message m on m.id = k.message_id
      where k.digest = :digest and k.expires_at > :now`),
    setKey: db.prepare<[{ digest: Uint8Array; content: Uint8Array; expiresAt: number; messageId: string }]>(`
      insert into message_key (digest, message_id, content, expires_at)
      values (:digest, :messageId, :content, :expiresAt)
      on conflict (digest) do update set message_id = excluded.message_id, content = excluded.content,
        expires_at = excluded.expires_at`),
    addMessage: db.prepare<[MessageValues]>(`
      insert into message (id, namespace_id, application, type, timestamp, created_at, trace_id, body_bytes, body)
      values (:id, :namespaceId, :application, :type, :timestamp, :createdAt, :traceId, :bodyBytes, :body)`),
    addDelivery: db.prepare<[DeliveryValues]>(`
      insert into message_delivery (message_id, endpoint_id, namespace_id, status)
      values (:messageId, :endpointId, :namespaceId, 'waiting')`),
    isMessage: db
      .prepare<[{ namespaceId: string; id: string }], number>(
        'select 1 from message where id = :id and namespace_id = :namespaceId',
      )
      .pluck(),
    replay: db.prepare<[DeliveryValues & { endedUntil: number }], DueRow>(`
      update message_delivery set status = 'waiting', tries = 0, is_replay = 1, next_attempt_at = null, ended_at = null
      where message_id = :messageId and endpoint_id = :endpointId and namespace_id = :namespaceId
        and status not in ('waiting', 'retrying') and ended_at <= :endedUntil
      returning ${DUE_COLUMNS}`),
    addReplay: db.prepare<[DeliveryValues], DueRow>(`
      insert into message_delivery (message_id, endpoint_id, namespace_id, status, is_replay)
      values (:messageId, :endpointId, :namespaceId, 'waiting', 1) on conflict do nothing returning ${DUE_COLUMNS}`),
  };
}

function dispatching(db: Database) {
  return {
    addAttempt: db.prepare<[AttemptValues]>(`
      insert into message_attempt (message_id, endpoint_id, number, "trigger", started_at, duration_ms, succeeded,
        response_status, excerpt, error, next_attempt_at)
      values (:messageId, :endpointId, :number, :trigger, :startedAt, :durationMs, :succeeded, :responseStatus, :excerpt,
        :error, :nextAttemptAt)
      on conflict do nothing`),
    end: db.prepare<[AttemptValues]>(`
      update message_delivery set status = :status, attempts = :number, tries = :tries, next_attempt_at = :nextAttemptAt,
        last_status = :responseStatus, last_error = :error, ended_at = :endedAt
      where message_id = :messageId and endpoint_id = :endpointId and status in ('waiting', 'retrying')`),
    setFailing: db.prepare<[FailureChange]>(
      'update outgoing_endpoint set failing_since = :failingSince where id = :endpointId',
    ),
    work: db.prepare<[], EndpointWork>(WORK),
    countUnfinished: db
      .prepare<[{ max: number }], number>(`
        with recursive n (id) as (
          select min(namespace_id) from message_delivery where ${OPEN}
          union all
          select (select min(namespace_id) from message_delivery where ${OPEN} and namespace_id > n.id)
          from n where n.id is not null
        )
        select count(*) from (
          select 1 from n cross join message_delivery d
          where d.namespace_id = n.id and d.status in ('waiting', 'retrying') and d.status <> 'succeeded' limit :max)`)
      .pluck(),
    waiting: db.prepare<[{ endpointId: string; limit: number }], DueRow>(`
      select ${DUE_COLUMNS} from message_delivery
      where endpoint_id = :endpointId and status = 'waiting' and ${OPEN} order by message_id limit :limit`),
    retries: db.prepare<[{ endpointId: string; now: number; limit: number }], DueRow>(`
      select ${DUE_COLUMNS} from message_delivery
      where endpoint_id = :endpointId and status = 'retrying' and next_attempt_at <= :now
      order by next_attempt_at limit :limit`),
    nextRetryAt: db
      .prepare<[{ endpointId: string; after: number }], number | null>(`
        select min(next_attempt_at) from message_delivery
        where endpoint_id = :endpointId and status = 'retrying' and next_attempt_at > :after`)
      .pluck(),
    contents: db.prepare<[string], MessageContent>(`
      select id, type, created_at as createdAt, trace_id as traceId, body from message
      where id in (select value from json_each(?))`),
    unfinished: db
      .prepare<[{ endpointId: string; limit: number }], string>(`
        select message_id from message_delivery
        where endpoint_id = :endpointId and status in ('waiting', 'retrying') and ${OPEN} limit :limit`)
      .pluck(),
    endUnfinished: db.prepare<
      [{ messageId: string; endpointId: string; status: string; error: string; at: number }]
    >(`
      update message_delivery set status = :status, last_error = :error, next_attempt_at = null, ended_at = :at
      where message_id = :messageId and endpoint_id = :endpointId`),
  };
}

function housekeeping(db: Database) {
  return {
    deadSince: db.prepare<[{ since: number; limit: number }], DeadDelivery>(`
      select d.namespace_id as namespaceId, d.message_id as messageId, d.endpoint_id as endpointId, m.type, m.application,
        d.last_error as lastError, d.ended_at as endedAt
      from message_delivery d join message m on m.id = d.message_id
      where d.status = 'dead' and d.ended_at >= :since order by d.ended_at limit :limit`),
    old: db.prepare<[{ before: string; after: string; limit: number }], { id: string; isOpen: number }>(`
      select id, exists (
        select 1 from message_delivery where message_id = m.id and status in ('waiting', 'retrying')) as isOpen
      from message m where id > :after and id < :before order by id limit :limit`),
    remove: [
      'delete from message_attempt where message_id = :id',
      'delete from message_delivery where message_id = :id',
      'delete from message where id = :id',
    ].map((text) => db.prepare<[{ id: string }]>(text)),
    pruneKeys: db.prepare<[{ now: number; limit: number }]>(`
      delete from message_key where digest in (select digest from message_key where expires_at <= :now limit :limit)`),
  };
}
