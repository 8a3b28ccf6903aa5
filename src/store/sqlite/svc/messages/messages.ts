import { DUE_COLUMNS } from '../../../message-rows.ts';
import type {
  DueDelivery,
  EndpointWork,
  MessageContent,
  MessageStore,
  NewStoredMessage,
  StoredMessageResult,
} from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { Committer } from '../committer/committer.ts';
import { MessageLists } from './lists.ts';
import { endUnit, publishUnit, testUnit } from './writes.ts';

type DueRow = Omit<DueDelivery, 'isReplay'> & { isReplay: number };
const dueOf = (row: DueRow): DueDelivery => ({ ...row, isReplay: row.isReplay === 1 });

interface KeyRow {
  messageId: string;
  content: Buffer;
  timestamp: number | null;
  endpoints: number;
}

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

/**
 * Messages in `svc.db`. `commit` writes on the committer thread, so that publishes and ends of attempts do not block the
 * event loop. @spec docs/messages.md
 */
export function sqliteMessages(db: Database, commit: Committer['write']): MessageStore {
  const sql = statements(db);
  const lists = new MessageLists(db);

  return {
    publish: publishing(db, sql, commit),
    addTest: async (message, attempt) => void (await commit(testUnit(message, attempt))),
    endAttempts: async (ends, failures) => void (await commit(endUnit(ends, failures))),
    work: () => db.read(() => sql.work.all()),
    countUnfinished: (max) => db.read(() => sql.countUnfinished.get({ max })!),
    waiting: (endpointId, limit) => db.read(() => sql.waiting.all({ endpointId, limit }).map(dueOf)),
    retries: (endpointId, now, limit) =>
      db.read(() => sql.retries.all({ endpointId, now, limit }).map(dueOf)),
    nextRetryAt: (endpointId, after) => db.read(() => sql.nextRetryAt.get({ endpointId, after }) ?? null),
    contents: (ids, maxBytes) => db.read(() => sql.contents.all({ ids: JSON.stringify(ids), maxBytes })),
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

function publishing(
  db: Database,
  sql: ReturnType<typeof statements>,
  commit: Committer['write'],
): MessageStore['publish'] {
  /** Returns the earlier message with the same key. */
  async function earlier({ key }: NewStoredMessage): Promise<StoredMessageResult | undefined> {
    const known = await db.read(() => sql.key.get(key!.digest));
    if (!known) return undefined;
    const { messageId: id, timestamp, endpoints } = known;
    const outcome = Buffer.compare(known.content, key!.content) === 0 ? 'duplicate' : 'conflict';
    return { outcome, id, timestamp: timestamp ?? 0, endpoints };
  }

  return async (message) => {
    const { id, timestamp, endpointIds } = message;
    const unit = publishUnit(message);
    for (;;) {
      const { changes } = await commit(unit);
      if (changes > 0) return { outcome: 'stored', id, timestamp, endpoints: endpointIds.length };
      const known = await earlier(message);
      // The key can expire and be pruned between the two calls. The message is then stored.
      if (known) return known;
    }
  };
}

function statements(db: Database) {
  return { ...replaying(db), ...dispatching(db), ...housekeeping(db) };
}

function replaying(db: Database) {
  return {
    key: db.prepare<[Uint8Array], KeyRow>(`
      select k.message_id as messageId, k.content, m.timestamp,
        (select count(*) from message_delivery where message_id = k.message_id) as endpoints
      from message_key k left join message m on m.id = k.message_id
      where k.digest = ?`),
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
    contents: db.prepare<[{ ids: string; maxBytes: number }], MessageContent>(`
      select id, application, type, created_at as createdAt, trace_id as traceId, body from message
      where id in (
        select id from (
          select m.id, m.body_bytes, sum(m.body_bytes) over (order by json_each.key) as total
          from json_each(:ids) cross join message m on m.id = json_each.value)
        where total <= :maxBytes or total = body_bytes)`),
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
