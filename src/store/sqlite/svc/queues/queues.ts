import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  LeaseChange,
  LeasedItem,
  LeaseRequest,
  LeaseResult,
  NewQueueItem,
  QueueKey,
  QueueLimits,
  QueueStore,
} from '../../../ports/index.ts';
import { pageOfQueue, recordOf } from '../../../queue-records.ts';
import {
  expire,
  isOpen,
  leaseIdOf,
  parseLeaseId,
  QUEUE_STATE,
  STATES_OF,
  settle,
} from '../../../queue-rules.ts';
import type { Database } from '../../database.ts';
import type { AddToFeed } from '../feed.ts';
import { INLINE_QUEUE_BODY_BYTES } from './schema.ts';
import { type ItemRow, type QueueStatements, queueStatements } from './statements.ts';

/** Maximum number of expired leases or delayed items that one call changes, so that it does not block others. */
const MAX_DUE = 1000;

/** Queues in `svc.db`. Concurrent calls share a transaction. @spec docs/queues.md */
export function sqliteQueues(db: Database, clock: Clock, addToFeed: AddToFeed): QueueStore {
  const sql = queueStatements(db);
  const items = new QueueItems(sql, clock);
  const inQueue = <Result>(key: QueueKey, none: Result, work: (queueId: number) => Result): Promise<Result> =>
    db.write(() => {
      const queueId = sql.queueId.get(key);
      return queueId === undefined ? none : work(queueId);
    });
  return {
    put: (item) => db.write(() => items.put(item)),
    lease: (request) => inQueue(request, [], (queueId) => items.lease(queueId, request)),
    settle: (key, leaseIds, change, limits) => {
      const lost = leaseIds.map((): LeaseResult => ({ outcome: 'lost', until: null }));
      return inQueue(key, lost, (queueId) => items.settle(queueId, leaseIds, change, limits));
    },
    due: (keys) =>
      db.read(() =>
        keys.filter((key) => {
          const queueId = sql.queueId.get(key);
          return queueId !== undefined && sql.isDue.get({ queueId, now: clock.now() }) === 1;
        }),
      ),
    expire: (key, limits) => inQueue(key, 0, (queueId) => items.expire(queueId, limits)),
    counts: (namespaceId) => db.read(() => sql.counts.all({ namespaceId: namespaceId ?? null })),
    count: (key) => db.read(() => sql.count.get(key)),
    list: (key, { status, after, limit }) =>
      db.read(() => {
        const queueId = sql.queueId.get(key);
        if (queueId === undefined) return { items: [], next: null };
        const [first, lastState] = status ? STATES_OF[status] : [QUEUE_STATE.ready, QUEUE_STATE.acked];
        const start = after ?? { state: first, dueAt: -1, position: 0 };
        return pageOfQueue(key, sql.list.all({ queueId, ...start, lastState, limit: limit + 1 }), limit);
      }),
    find: (key, id) =>
      db.read(() => {
        const queueId = sql.queueId.get(key);
        const row = queueId === undefined ? undefined : sql.found.get({ queueId, id });
        if (!row) return undefined;
        const { headers, body } = row;
        return headers === null ? recordOf(key, row) : { ...recordOf(key, row), headers, body: body! };
      }),
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

/** Changes of items, within a transaction. */
class QueueItems {
  readonly #sql: QueueStatements;
  readonly #clock: Clock;

  constructor(sql: QueueStatements, clock: Clock) {
    this.#sql = sql;
    this.#clock = clock;
  }

  put({ delayMs = 0, headers, body, ...item }: NewQueueItem): boolean {
    const { namespaceId, queue, id, orderKey, deliveryId, receivedAt } = item;
    this.#sql.addQueue.run({ namespaceId, queue });
    const queueId = this.#sql.queueId.get({ namespaceId, queue })!;
    const dueAt = delayMs === 0 ? 0 : this.#clock.now() + delayMs;
    const first = delayMs === 0 ? QUEUE_STATE.ready : QUEUE_STATE.delayed;
    const isInline = body.length <= INLINE_QUEUE_BODY_BYTES;
    const { changes, lastInsertRowid } = this.#sql.add.run({
      ...{ queueId, id, dueAt, orderKey, deliveryId, receivedAt, headers },
      state: orderKey === null ? first : QUEUE_STATE.blocked,
      bodyBytes: body.length,
      body: isInline ? body : null,
    });
    if (changes === 0) return false;
    if (!isInline) this.#sql.addBody.run({ position: lastInsertRowid, body });
    this.#ensureHead({ queueId, orderKey });
    return true;
  }

  lease(queueId: number, request: LeaseRequest): LeasedItem[] {
    const { max, leaseMs, token, concurrency } = request;
    this.expire(queueId, request);
    this.#endDelays(queueId);
    const room = concurrency === null ? max : concurrency - this.#sql.leased.get(queueId)!;
    const leasedUntil = this.#clock.now() + leaseMs;
    // A negative limit of SQLite would mean no limit.
    const rows = this.#sql.ready.all({ queueId, limit: Math.max(0, Math.min(max, room)) });
    return rows.map(({ position, headers, body, attempt: before, lastError, ...row }) => {
      const attempt = before + 1;
      this.#sql.change.run({
        ...{ position, attempt, token, lastError },
        state: QUEUE_STATE.leased,
        dueAt: leasedUntil,
      });
      const { id, deliveryId, orderKey, receivedAt } = row;
      const content = { headers: headers!, body: body! };
      return {
        leaseId: leaseIdOf(position, token),
        ...{ id, deliveryId, orderKey, attempt, receivedAt, leasedUntil, ...content },
      };
    });
  }

  settle(
    queueId: number,
    leaseIds: readonly string[],
    change: LeaseChange,
    { maxAttempts }: QueueLimits,
  ): LeaseResult[] {
    const now = this.#clock.now();
    return leaseIds.map((leaseId) => {
      const lease = parseLeaseId(leaseId);
      const row = lease && this.#sql.item.get(lease.position);
      if (row?.queueId !== queueId) return { outcome: 'lost', until: null };
      const { outcome, until, next } = settle(row, lease!.token, change, { now, maxAttempts });
      if (next !== row) this.#write(row, { ...row, ...next });
      return { outcome, until };
    });
  }

  expire(queueId: number, limits: QueueLimits): number {
    const now = this.#clock.now();
    const rows = this.#sql.dueRows.all({ queueId, state: QUEUE_STATE.leased, before: now, limit: MAX_DUE });
    for (const row of rows) this.#write(row, { ...row, ...expire(row, now, limits) });
    return rows.length;
  }

  retry(queueId: number, id: string): boolean {
    const row = this.#sql.found.get({ queueId, id });
    if (row?.state !== QUEUE_STATE.dead) return false;
    const state = row.orderKey === null ? QUEUE_STATE.ready : QUEUE_STATE.blocked;
    this.#sql.change.run({ ...row, state, dueAt: 0, attempt: 0, token: null });
    this.#ensureHead(row);
    return true;
  }

  remove(queueId: number, id: string): boolean {
    const row = this.#sql.found.get({ queueId, id });
    if (!row || row.state === QUEUE_STATE.leased) return false;
    this.#delete(row);
    return true;
  }

  purge(queueId: number, status: 'waiting' | 'dead', limit: number): number {
    const [first, lastState] = STATES_OF[status];
    const start = { state: first, dueAt: -1, position: 0 };
    const rows = this.#sql.list.all({ queueId, ...start, lastState, limit });
    for (const row of rows) this.#delete(row);
    return rows.length;
  }

  prune(rows: { queueId: number; state: number; before: number; limit: number }): number {
    if (rows.limit <= 0) return 0;
    const old = this.#sql.dueRows.all(rows);
    for (const { position } of old) this.#sql.remove.run(position);
    return old.length;
  }

  #delete(row: ItemRow): void {
    this.#sql.remove.run(row.position);
    this.#ensureHead(row);
  }

  /** Writes the new state of an item. The next item of its order key becomes ready when the item is no longer open. */
  #write(before: ItemRow, { position, state, dueAt, attempt, token, lastError }: ItemRow): void {
    if (state === QUEUE_STATE.acked) {
      this.#sql.ack.run({ position, dueAt });
      if (before.bodyBytes > INLINE_QUEUE_BODY_BYTES) this.#sql.dropBody.run(position);
    } else this.#sql.change.run({ position, state, dueAt, attempt, token, lastError });
    if (isOpen(before) && state >= QUEUE_STATE.dead) this.#ensureHead(before);
  }

  #endDelays(queueId: number): void {
    const due = { queueId, state: QUEUE_STATE.delayed, before: this.#clock.now(), limit: MAX_DUE };
    for (const row of this.#sql.dueRows.all(due))
      this.#sql.change.run({ ...changedOf(row), state: QUEUE_STATE.ready, dueAt: 0 });
  }

  /** Makes the first item of an order key ready, unless the key has an item that is ready, delayed or leased. */
  #ensureHead({ queueId, orderKey }: Pick<ItemRow, 'queueId' | 'orderKey'>): void {
    if (orderKey === null || this.#sql.hasHead.get({ queueId, orderKey }) === 1) return;
    this.#sql.unblock.run({ queueId, orderKey, now: this.#clock.now() });
  }
}

const changedOf = ({ position, attempt, token, lastError }: ItemRow) => ({
  position,
  attempt,
  token,
  lastError,
});
