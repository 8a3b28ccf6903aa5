import type { Clock } from '../../../../kit/time/clock.ts';
import type {
  LeaseChange,
  LeasedItem,
  LeaseRequest,
  LeaseResult,
  NewQueueItem,
  QueueItemFilter,
  QueueLimits,
} from '../../../ports/index.ts';
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
import type { ContentRow, ItemRow } from './rows.ts';
import { INLINE_QUEUE_BODY_BYTES } from './schema.ts';

/** Maximum number of expired leases or delayed items that one call changes, so that it does not block others. */
const MAX_DUE = 1000;

/** Changes of items, within a transaction. */
export class QueueItems {
  readonly #sql: ReturnType<typeof statements>;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#sql = statements(db);
    this.#clock = clock;
  }

  isDue(queueId: number): boolean {
    return this.#sql.isDue.get({ queueId, now: this.#clock.now() }) === 1;
  }

  lastDueAt(queueId: number, state: number): number {
    return this.#sql.lastDue.get({ queueId, state }) ?? 0;
  }

  list(queueId: number, { status, after, limit }: QueueItemFilter): ItemRow[] {
    const [first, lastState] = status ? STATES_OF[status] : [QUEUE_STATE.ready, QUEUE_STATE.acked];
    const start = after ?? { state: first, dueAt: -1, position: 0 };
    return this.#sql.list.all({ queueId, ...start, lastState, limit });
  }

  find(queueId: number, id: string): (ItemRow & ContentRow) | undefined {
    return this.#sql.found.get({ queueId, id });
  }

  put(queueId: number, { delayMs = 0, headers, body, ...item }: NewQueueItem): boolean {
    const { id, orderKey, deliveryId, receivedAt } = item;
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

  /** `leased` returns the number of leased items of the queue. */
  lease(queueId: number, request: LeaseRequest, leased: () => number): LeasedItem[] {
    const { max, maxBytes, leaseMs, token, concurrency } = request;
    this.expire(queueId, request);
    this.#endDelays(queueId);
    const room = concurrency === null ? max : concurrency - leased();
    const leasedUntil = this.#clock.now() + leaseMs;
    const rows = this.#ready(queueId, Math.min(max, room), maxBytes);
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
    const rows = this.list(queueId, { status, limit });
    for (const row of rows) this.#delete(row);
    return rows.length;
  }

  prune(rows: { queueId: number; state: number; before: number; limit: number }): number {
    if (rows.limit <= 0) return 0;
    const old = this.#sql.dueRows.all(rows);
    for (const { position } of old) this.#sql.remove.run(position);
    return old.length;
  }

  #ready(queueId: number, limit: number, maxBytes: number): Array<ItemRow & ContentRow> {
    const rows: Array<ItemRow & ContentRow> = [];
    let bytes = 0;
    // A negative limit of SQLite would mean no limit.
    for (const row of this.#sql.ready.iterate({ queueId, limit: Math.max(0, limit) })) {
      rows.push(row);
      bytes += row.bodyBytes;
      if (bytes >= maxBytes) break;
    }
    return rows;
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

type NewRow = Omit<ItemRow, 'position' | 'attempt' | 'token' | 'lastError'> & ContentRow;
type ChangedRow = Pick<ItemRow, 'position' | 'state' | 'dueAt' | 'attempt' | 'token' | 'lastError'>;
type OfKey = Pick<ItemRow, 'queueId' | 'orderKey'>;
type OfState = { queueId: number; state: number; before: number; limit: number };

const COLUMNS = `position, queue_id as queueId, id, state, due_at as dueAt, attempt, token, order_key as orderKey,
  delivery_id as deliveryId, received_at as receivedAt, last_error as lastError, body_bytes as bodyBytes`;
const CONTENT =
  'headers, coalesce(body, (select body from queue_body b where b.position = i.position)) as body';

function statements(db: Database) {
  return {
    add: db.prepare<[NewRow]>(`
      insert into queue_item (queue_id, id, state, due_at, order_key, delivery_id, received_at, body_bytes, headers, body)
      values (:queueId, :id, :state, :dueAt, :orderKey, :deliveryId, :receivedAt, :bodyBytes, :headers, :body)
      on conflict (queue_id, id) do nothing`),
    addBody: db.prepare<[{ position: number | bigint; body: Uint8Array }]>(
      'insert into queue_body (position, body) values (:position, :body)',
    ),
    dropBody: db.prepare<[number]>('delete from queue_body where position = ?'),
    item: db.prepare<[number], ItemRow>(`select ${COLUMNS} from queue_item where position = ?`),
    found: db.prepare<[{ queueId: number; id: string }], ItemRow & ContentRow>(
      `select ${COLUMNS}, ${CONTENT} from queue_item i where queue_id = :queueId and id = :id`,
    ),
    content: db.prepare<[number], ContentRow>(`select ${CONTENT} from queue_item i where position = ?`),
    change: db.prepare<[ChangedRow]>(`
      update queue_item set state = :state, due_at = :dueAt, attempt = :attempt, token = :token, last_error = :lastError
      where position = :position`),
    /** Acked items keep only what makes repeated puts and acks harmless. */
    ack: db.prepare<[{ position: number; dueAt: number }]>(`
      update queue_item set state = ${QUEUE_STATE.acked}, due_at = :dueAt, headers = null, body = null
      where position = :position`),
    remove: db.prepare<[number]>('delete from queue_item where position = ?'),
    ready: db.prepare<[{ queueId: number; limit: number }], ItemRow & ContentRow>(`
      select ${COLUMNS}, ${CONTENT} from queue_item i where queue_id = :queueId and state = ${QUEUE_STATE.ready}
      order by due_at, position limit :limit`),
    /** Rows of a state that are due, in the order in which they became due. */
    dueRows: db.prepare<[OfState], ItemRow>(`
      select ${COLUMNS} from queue_item where queue_id = :queueId and state = :state and due_at <= :before
      order by due_at, position limit :limit`),
    lastDue: db
      .prepare<[{ queueId: number; state: number }], number | null>(
        'select max(due_at) from queue_item where queue_id = :queueId and state = :state',
      )
      .pluck(),
    isDue: db
      .prepare<[{ queueId: number; now: number }], number>(`
      select exists (select 1 from queue_item where queue_id = :queueId and state = ${QUEUE_STATE.ready})
        or exists (select 1 from queue_item where queue_id = :queueId and state = ${QUEUE_STATE.delayed} and due_at <= :now)
        or exists (select 1 from queue_item where queue_id = :queueId and state = ${QUEUE_STATE.leased} and due_at <= :now)`)
      .pluck(),
    hasHead: db
      .prepare<[OfKey], number>(`
      select exists (select 1 from queue_item where queue_id = :queueId and order_key = :orderKey
        and state in (${QUEUE_STATE.ready}, ${QUEUE_STATE.delayed}, ${QUEUE_STATE.leased}) and state < 4)`)
      .pluck(),
    unblock: db.prepare<[OfKey & { now: number }]>(`
      update queue_item set state = iif(due_at > :now, ${QUEUE_STATE.delayed}, ${QUEUE_STATE.ready}),
        due_at = iif(due_at > :now, due_at, 0)
      where position = (
        select position from queue_item where queue_id = :queueId and order_key = :orderKey
          and state = ${QUEUE_STATE.blocked} and state < 4
        order by position limit 1)`),
    list: db.prepare<
      [
        {
          queueId: number;
          state: number;
          dueAt: number;
          position: number;
          lastState: number;
          limit: number;
        },
      ],
      ItemRow
    >(`
      select ${COLUMNS} from queue_item
      where queue_id = :queueId and (state, due_at, position) > (:state, :dueAt, :position) and state <= :lastState
      order by state, due_at, position limit :limit`),
  };
}
