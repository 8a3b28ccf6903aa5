import type { QueueCountsOf, QueueKey, QueueSettingsRecord } from '../../../ports/index.ts';
import { QUEUE_STATE } from '../../../queue-rules.ts';
import type { Database } from '../../database.ts';

/** A row of `queue_item` without its content. */
export interface ItemRow {
  position: number;
  queueId: number;
  id: string;
  state: number;
  dueAt: number;
  attempt: number;
  token: string | null;
  orderKey: string | null;
  deliveryId: string | null;
  receivedAt: number;
  lastError: string | null;
  bodyBytes: number;
}

export interface ContentRow {
  headers: string | null;
  body: Uint8Array | null;
}

type NewRow = Omit<ItemRow, 'position' | 'attempt' | 'token' | 'lastError'> & ContentRow;
type ChangedRow = Pick<ItemRow, 'position' | 'state' | 'dueAt' | 'attempt' | 'token' | 'lastError'>;
type OfKey = Pick<ItemRow, 'queueId' | 'orderKey'>;
type OfState = { queueId: number; state: number; before: number; limit: number };

const COLUMNS = `position, queue_id as queueId, id, state, due_at as dueAt, attempt, token, order_key as orderKey,
  delivery_id as deliveryId, received_at as receivedAt, last_error as lastError, body_bytes as bodyBytes`;
const CONTENT =
  'headers, coalesce(body, (select body from queue_body b where b.position = i.position)) as body';

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

export type QueueStatements = ReturnType<typeof queueStatements>;

export function queueStatements(db: Database) {
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
    leased: db.prepare<[number], number>('select leased from queue where queue_id = ?').pluck(),
    ...itemStatements(db),
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

function itemStatements(db: Database) {
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
