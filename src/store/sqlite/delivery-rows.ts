import type {
  DeliveryEnd,
  DeliveryFilter,
  DeliveryPage,
  DeliveryRecord,
  NewDelivery,
} from '../ports/index.ts';
import type { Step } from './committer/protocol.ts';
import type { Database } from './database.ts';
import { SQL } from './delivery-statements.ts';
import { INLINE_BODY_BYTES } from './schema.ts';

/** What a row has beside the delivery. */
export type RowState = Pick<DeliveryRecord, 'status' | 'steps' | 'httpStatus' | 'outcome' | 'durationMs'>;

/** Rows that a list looks at in one call, when it must look into bodies and when not. */
const SEARCHED_ROWS = 1000;
const SCANNED_ROWS = 5000;

/** The steps that write a delivery. `marker` is its digest. */
export function insertSteps(delivery: NewDelivery, state: RowState, marker: Uint8Array | null): Step[] {
  const d = delivery;
  const { body } = d;
  const isLarge = body !== null && body.byteLength > INLINE_BODY_BYTES;
  const inRow = isLarge ? null : body;
  const row: Step = [
    SQL.insert,
    [
      ...[d.webhookId, d.namespaceId, d.pluginId, d.event, d.instanceId, d.receivedAt, d.source, d.requestId],
      ...[d.traceId, d.mode, d.origin, state.status, state.httpStatus, state.durationMs, state.steps],
      ...[state.outcome, marker, d.orderKey, d.replayOf, d.bodyBytes, d.headers, inRow],
    ],
  ];
  return isLarge ? [row, [SQL.insertBody, [d.webhookId, body]]] : [row];
}

export function finishStep(webhookId: string, end: DeliveryEnd): Step {
  const { status, httpStatus, steps, outcome, durationMs, nextAttemptAt = null } = end;
  return [SQL.end, [status, httpStatus, steps, outcome, durationMs, nextAttemptAt, webhookId]];
}

/** Reading; to be called inside `db.read`. */
export function deliveryRows(db: Database) {
  const sql = statements(db);
  return {
    find: (webhookId: string) => firstOf(sql.find.all(uuidBytes(webhookId))),
    unfinished: (limit: number, after: number) => sql.unfinished.all(after, limit).map(recordOf),
    after: (namespaceId: string, position: number, limit: number) =>
      sql.after.all(namespaceId, position, limit).map(recordOf),
    ended: (namespaceId: string, positions: readonly number[]) =>
      sql.ended.all(namespaceId, JSON.stringify(positions)).map(recordOf),
    latest: () => sql.latest.get()?.position ?? 0,
    /** Records of requests that no handler saw. */
    unhandled: () => sql.unhandled.get()!.count,
    /** The oldest of what has ended that still have their body, after a position. */
    withBodies: (after: number, limit: number) => sql.withBodies.all({ after, limit }),

    /** Looks through a bounded stretch of the namespace's rows, so that a search for something rare stops the event loop for milliseconds only. */
    list(
      namespaceId: string,
      {
        limit,
        before,
        status,
        pluginId,
        event,
        since,
        search,
      }: DeliveryFilter & { limit: number; before?: number | undefined },
    ): DeliveryPage {
      const scan = search === undefined ? SCANNED_ROWS : SEARCHED_ROWS;
      const page = { namespaceId, before: before ?? Number.MAX_SAFE_INTEGER, scan, since: since ?? 0 };
      const bounds = sql.stretch.get(page)!;
      const found = sql.list.all({
        ...page,
        pluginId: pluginId ?? null,
        event: event ?? null,
        status: status ? JSON.stringify(status) : null,
        search: search ?? null,
        limit: limit + 1,
      });
      const items = found.slice(0, limit).map(recordOf);
      if (found.length > limit) return { items, next: items.at(-1)!.position };
      return { items, next: bounds.count < scan ? null : bounds.oldest };
    },
  };
}

interface Row extends Omit<DeliveryRecord, 'webhookId' | 'replayOf' | 'replayedBy'> {
  webhookId: Buffer;
  replayOf: Buffer | null;
  replayedBy: Buffer | null;
}

function recordOf({ webhookId, replayOf, replayedBy, ...row }: Row): DeliveryRecord {
  return {
    ...row,
    webhookId: uuidText(webhookId),
    replayOf: replayOf && uuidText(replayOf),
    replayedBy: replayedBy && uuidText(replayedBy),
  };
}

const firstOf = (rows: Row[]): DeliveryRecord | undefined => rows[0] && recordOf(rows[0]);

/** Stored as 16 bytes instead of 36: the length of keys decides how many a page of the index holds. */
function uuidBytes(text: string): Buffer {
  return Buffer.from(text.replaceAll('-', ''), 'hex');
}

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function statements(db: Database) {
  const head = `d.position, webhook_id as webhookId, namespace_id as namespaceId, plugin_id as pluginId, event,
    instance_id as instanceId, received_at as receivedAt, source, request_id as requestId, trace_id as traceId, mode, origin,
    status, http_status as httpStatus, duration_ms as durationMs, attempts, next_attempt_at as nextAttemptAt, steps, outcome,
    marker, order_key as orderKey, replay_of as replayOf, replayed_by as replayedBy, body_bytes as bodyBytes, headers`;
  const whole = `select ${head}, coalesce(d.body, b.body) as body from delivery d left join delivery_body b using (position)`;
  const ended = `status not in ('accepted', 'retrying', 'running')`;
  type Stretch = { namespaceId: string; before: number; scan: number; since: number };
  type Listed = Stretch & {
    pluginId: string | null;
    event: string | null;
    status: string | null;
    search: string | null;
    limit: number;
  };
  const stretch = `select position from delivery
    where namespace_id = :namespaceId and position < :before order by position desc limit :scan`;
  return {
    find: db.prepare<[Buffer], Row>(`${whole} where webhook_id = ?`),
    unfinished: db.prepare<[number, number], Row>(
      `${whole} where status in ('accepted', 'retrying') and d.position > ? order by d.position limit ?`,
    ),
    after: db.prepare<[string, number, number], Row>(
      `${whole} where namespace_id = ? and d.position > ? order by d.position limit ?`,
    ),
    ended: db.prepare<[string, string], Row>(
      `${whole} where namespace_id = ? and ${ended} and d.position in (select value from json_each(?)) order by d.position`,
    ),
    withBodies: db.prepare<[{ after: number; limit: number }], { position: number; bytes: number }>(`
      select position, bytes from (
        select * from (select position, body_bytes as bytes from delivery
          where position > :after and body is not null and ${ended} order by position limit :limit)
        union all
        select * from (select b.position, body_bytes as bytes from delivery_body b join delivery using (position)
          where ${ended} order by b.position limit :limit))
      order by position limit :limit`),
    unhandled: db.prepare<[], { count: number }>(
      `select count(*) as count from delivery indexed by delivery_unhandled
       where status in ('refused', 'challenge', 'duplicate')`,
    ),
    latest: db.prepare<[], { position: number }>(`select max(position) as position from delivery`),
    stretch: db.prepare<[Stretch], { count: number; oldest: number | null }>(
      `select count(*) as count, min(position) as oldest from (${stretch})`,
    ),
    list: db.prepare<[Listed], Row>(`
      select ${head}, null as body from delivery d left join delivery_body b using (position)
      where d.position in (${stretch}) and received_at >= :since
        and (:pluginId is null or plugin_id = :pluginId) and (:event is null or event = :event)
        and (:status is null or status in (select value from json_each(:status)))
        and (:search is null or instr(cast(coalesce(d.body, b.body) as text), :search) > 0 or instr(outcome, :search) > 0
          or source = :search or request_id = :search or instance_id = :search)
      order by d.position desc limit :limit`),
  };
}
