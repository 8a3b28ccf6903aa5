import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  LeaseResult,
  QueueCountsOf,
  QueueKey,
  QueueSettingsRecord,
  QueueStore,
  QueueUsage,
} from '../../../ports/index.ts';
import { pageOfQueue, recordOf } from '../../../queue-records.ts';
import { QUEUE_STATE } from '../../../queue-rules.ts';
import type { Database } from '../../database.ts';
import type { AddToFeed } from '../feed.ts';
import { QueueItems } from './items.ts';

/** Queues in `svc.db`. Concurrent calls share a transaction. @spec docs/queues.md */
export function sqliteQueues(db: Database, clock: Clock, addToFeed: AddToFeed): QueueStore {
  const sql = statements(db);
  const items = new QueueItems(db, clock);
  const inQueue = <Result>(key: QueueKey, none: Result, work: (queueId: number) => Result): Promise<Result> =>
    db.write(() => {
      const queueId = sql.queueId.get(key);
      return queueId === undefined ? none : work(queueId);
    });
  return {
    put: (item) =>
      db.write(() => {
        const { namespaceId, queue } = item;
        sql.addQueue.run({ namespaceId, queue });
        return items.put(sql.queueId.get({ namespaceId, queue })!, item);
      }),
    lease: (request) =>
      inQueue(request, [], (queueId) => items.lease(queueId, request, () => sql.leased.get(queueId)!)),
    settle: (key, leaseIds, change, limits) => {
      const lost = leaseIds.map((): LeaseResult => ({ outcome: 'lost', until: null }));
      return inQueue(key, lost, (queueId) => items.settle(queueId, leaseIds, change, limits));
    },
    due: (keys) =>
      db.read(() =>
        keys.filter((key) => {
          const queueId = sql.queueId.get(key);
          return queueId !== undefined && items.isDue(queueId);
        }),
      ),
    expire: (key, limits) => inQueue(key, 0, (queueId) => items.expire(queueId, limits)),
    counts: (namespaceId) => db.read(() => sql.counts.all({ namespaceId: namespaceId ?? null })),
    count: (key) => db.read(() => sql.count.get(key)),
    usage: (namespaceId) => db.read(() => sql.usage.get({ namespaceId })!),
    list: (key, filter) =>
      db.read(() => {
        const queueId = sql.queueId.get(key);
        if (queueId === undefined) return { items: [], next: null };
        const { limit } = filter;
        return pageOfQueue(key, items.list(queueId, { ...filter, limit: limit + 1 }), limit);
      }),
    find: (key, id) =>
      db.read(() => {
        const queueId = sql.queueId.get(key);
        const row = queueId === undefined ? undefined : items.find(queueId, id);
        if (!row) return undefined;
        const { headers, body } = row;
        return headers === null ? recordOf(key, row) : { ...recordOf(key, row), headers, body: body! };
      }),
    lastDeadAt: (key) => db.read(() => items.lastDueAt(sql.queueId.get(key) ?? 0, QUEUE_STATE.dead)),
    retry: (key, ids) => inQueue(key, [], (queueId) => ids.filter((id) => items.retry(queueId, id))),
    remove: (key, ids) => inQueue(key, [], (queueId) => ids.filter((id) => items.remove(queueId, id))),
    purge: (key, status, limit) => inQueue(key, 0, (queueId) => items.purge(queueId, status, limit)),
    prune: ({ ackedBefore, deadBefore, limit }) =>
      db.write(() => {
        let left = limit;
        for (const queueId of sql.queueIds.all()) {
          left -= items.prune({ queueId, state: QUEUE_STATE.acked, before: ackedBefore - 1, limit: left });
          left -= items.prune({ queueId, state: QUEUE_STATE.dead, before: deadBefore - 1, limit: left });
        }
        return limit - left;
      }),
    settings: () => db.read(() => sql.settings.all()),
    configure: (key, settings) =>
      db.write(() => {
        if (settings === null) sql.unconfigure.run(key);
        else sql.configure.run({ ...key, settings });
        addToFeed('queues', JSON.stringify([key.namespaceId, key.queue]));
      }),
  };
}

/** Time at which the oldest waiting item was received. Of the delayed items, only the first one due counts. */
const OLDEST = `(
  select min(received_at) from (
    select * from (select received_at from queue_item where queue_id = q.queue_id and state = 0 order by due_at, position limit 1)
    union all
    select * from (select received_at from queue_item where queue_id = q.queue_id and state = 1 order by due_at, position limit 1)
    union all
    select * from (select received_at from queue_item where queue_id = q.queue_id and state = 2 order by due_at, position limit 1)
  ))`;

const COUNTS = `select namespace_id as namespaceId, name as queue, waiting, leased, dead, ${OLDEST} as oldestReceivedAt
  from queue q`;

function statements(db: Database) {
  return {
    addQueue: db.prepare<[QueueKey]>(
      'insert into queue (namespace_id, name) values (:namespaceId, :queue) on conflict do nothing',
    ),
    queueId: db
      .prepare<[QueueKey], number>(
        'select queue_id from queue where namespace_id = :namespaceId and name = :queue',
      )
      .pluck(),
    queueIds: db.prepare<[], number>('select queue_id from queue').pluck(),
    counts: db.prepare<[{ namespaceId: string | null }], QueueCountsOf>(
      `${COUNTS} where :namespaceId is null or namespace_id = :namespaceId order by namespace_id, name`,
    ),
    count: db.prepare<[QueueKey], QueueCountsOf>(
      `${COUNTS} where namespace_id = :namespaceId and name = :queue`,
    ),
    usage: db.prepare<[{ namespaceId: string }], QueueUsage>(
      'select count(*) as queues, coalesce(sum(bytes), 0) as bytes from queue where namespace_id = :namespaceId',
    ),
    leased: db.prepare<[number], number>('select leased from queue where queue_id = ?').pluck(),
    settings: db.prepare<[], QueueSettingsRecord>(
      'select namespace_id as namespaceId, name as queue, settings from queue_setting',
    ),
    configure: db.prepare<[QueueSettingsRecord]>(`
      insert into queue_setting (namespace_id, name, settings) values (:namespaceId, :queue, :settings)
      on conflict (namespace_id, name) do update set settings = excluded.settings`),
    unconfigure: db.prepare<[QueueKey]>(
      'delete from queue_setting where namespace_id = :namespaceId and name = :queue',
    ),
  };
}
