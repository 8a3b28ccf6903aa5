import { headerNeedle, MASKED_VALUE, PAIRS_START } from '../../../../kit/data/recorded-headers.ts';
import type { DeliveryEnd, DeliveryRecord, NewDelivery } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { Step } from '../committer/protocol.ts';
import { INLINE_BODY_BYTES } from '../schema.ts';
import { IS_OPEN, SQL } from './statements.ts';

/** Columns that describe the progress of a delivery. */
export interface RowState
  extends Pick<DeliveryRecord, 'status' | 'steps' | 'httpStatus' | 'outcome' | 'durationMs'> {
  /** Fence token of the member process that runs the handler. */
  owner?: number | undefined;
}

/** Returns the steps that insert a delivery. `marker` is the digest of the delivery's idempotency key. */
export function insertSteps(delivery: NewDelivery, state: RowState, marker: Uint8Array | null): Step[] {
  const d = delivery;
  const { body } = d;
  const isLarge = body !== null && body.byteLength > INLINE_BODY_BYTES;
  const inRow = isLarge ? null : body;
  const { owner } = state;
  const row: Step = [
    owner === undefined ? SQL.insert : SQL.insertOwned,
    [
      ...[d.webhookId, d.namespaceId, d.pluginId, d.event, d.instanceId, d.receivedAt, d.source, d.requestId],
      ...[d.traceId, d.mode, d.origin, state.status, state.httpStatus, state.durationMs, state.steps],
      ...[state.outcome, marker, d.orderKey, d.replayOf, d.bodyBytes, d.headers, inRow],
      ...(owner === undefined ? [] : [owner]),
    ],
  ];
  return isLarge ? [row, [SQL.insertBody, [d.webhookId, body]]] : [row];
}

export function finishStep(webhookId: string, end: DeliveryEnd): Step {
  const { status, httpStatus, steps, outcome, durationMs, nextAttemptAt = null } = end;
  return [SQL.end, [status, httpStatus, steps, outcome, durationMs, nextAttemptAt, webhookId]];
}

/** Returns queries on deliveries, which must run inside `db.read`. */
export function deliveryRows(db: Database) {
  const sql = statements(db);
  return {
    find: (webhookId: string) => firstOf(sql.find.all(uuidBytes(webhookId))),
    /**
     * Returns unfinished deliveries in order of position until `limit` or `budget` is reached. The first unfinished
     * delivery is always returned. `isAll` is true if no further unfinished delivery exists.
     */
    unfinished(
      limit: number,
      after: number,
      budget: { bytes: number; ms: number },
    ): { records: DeliveryRecord[]; isAll: boolean } {
      const records: DeliveryRecord[] = [];
      const endsAt = performance.now() + budget.ms;
      let bytes = 0;
      for (let from = after; records.length < limit; ) {
        const place = sql.open.get(from);
        if (!place) return { records, isAll: true };
        bytes += place.bytes;
        if (records.length > 0 && (bytes > budget.bytes || performance.now() >= endsAt)) break;
        records.push(recordOf(sql.at.get(place.position)!));
        from = place.position;
      }
      return { records, isAll: false };
    },
    after: (namespaceId: string, position: number, limit: number) =>
      sql.after.all(namespaceId, position, limit).map(recordOf),
    ended: (namespaceId: string, positions: readonly number[]) =>
      sql.ended.all(namespaceId, JSON.stringify(positions)).map(recordOf),
    latest: () => sql.latest.get()?.position ?? 0,
    /** Returns the number of deliveries that no handler processed. */
    unhandled: () => sql.unhandled.get()!.count,
    bodies: (after: number, limit: number) => sql.bodies.all(after, limit),
    ages: (after: number, last: number, limit: number) => sql.ages.all(after, last, limit),
    /** Returns the deliveries at these positions, without bodies. */
    heads: (positions: readonly number[]) =>
      new Map(sql.heads.all(JSON.stringify(positions)).map((row) => [row.position, recordOf(row)])),
    /** Returns rows of the namespace before a position, in descending order. */
    rowsBefore: (namespaceId: string, before: number, limit: number) =>
      sql.rowsBefore.all(namespaceId, before, limit),
    facts: (namespaceId: string, positions: readonly number[]) =>
      sql.facts.all(namespaceId, JSON.stringify(positions)),
    /** Returns the positions of deliveries whose body, visible headers, outcome, source or ids contain the text. */
    holding: (positions: readonly number[], search: string) =>
      sql.holding
        .all({ positions: JSON.stringify(positions), search, needle: headerNeedle(search) })
        .map(({ position }) => position),
  };
}

export type DeliveryRows = ReturnType<typeof deliveryRows>;

export interface DeliveryAge {
  position: number;
  receivedAt: number;
  /** 1 if the delivery waits for its handler to start, otherwise 0. */
  waits: 0 | 1;
  runs: 0 | 1;
}

/** Columns of a delivery that list filters compare. */
export type DeliveryFacts = Pick<DeliveryRecord, 'position' | 'receivedAt' | 'pluginId' | 'event' | 'status'>;

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

/** Encodes a UUID as 16 bytes instead of 36 characters to save space in the index. */
function uuidBytes(text: string): Buffer {
  return Buffer.from(text.replaceAll('-', ''), 'hex');
}

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Compares the texts of `searchedHeaders`. Headers without the needle are not parsed. */
const HEADERS_CONTAIN = `
  case when instr(headers, :needle) > 0 and substr(headers, 1, 3) = '${PAIRS_START}' then exists (
    select 1 from json_each(headers) where value ->> 0 not like ':%' and instr(
      iif(value ->> 1 = '${MASKED_VALUE}', value ->> 0, (value ->> 0) || ': ' || (value ->> 1)), :search) > 0) end`;

function statements(db: Database) {
  const head = `d.position, webhook_id as webhookId, namespace_id as namespaceId, plugin_id as pluginId, event,
    instance_id as instanceId, received_at as receivedAt, source, request_id as requestId, trace_id as traceId, mode, origin,
    status, http_status as httpStatus, duration_ms as durationMs, attempts, next_attempt_at as nextAttemptAt, steps, outcome,
    marker, order_key as orderKey, replay_of as replayOf, replayed_by as replayedBy, body_bytes as bodyBytes, headers`;
  const whole = `select ${head}, coalesce(d.body, b.body) as body from delivery d left join delivery_body b using (position)`;
  const facts = 'position, received_at as receivedAt, plugin_id as pluginId, event, status';
  const ended = `not (${IS_OPEN})`;
  return {
    find: db.prepare<[Buffer], Row>(`${whole} where webhook_id = ?`),
    open: db.prepare<[number], { position: number; bytes: number }>(
      `select position, body_bytes as bytes from delivery
       where ${IS_OPEN} and status <> 'running' and position > ? order by position limit 1`,
    ),
    at: db.prepare<[number], Row>(`${whole} where d.position = ?`),
    after: db.prepare<[string, number, number], Row>(
      `${whole} where namespace_id = ? and d.position > ? order by d.position limit ?`,
    ),
    ended: db.prepare<[string, string], Row>(
      `${whole} where namespace_id = ? and ${ended} and d.position in (select value from json_each(?)) order by d.position`,
    ),
    unhandled: db.prepare<[], { count: number }>('select count(*) as count from delivery_unhandled'),
    bodies: db.prepare<
      [number, number],
      { position: number; bytes: number; hasBody: 0 | 1; hasEnded: 0 | 1 }
    >(`
      select position, body_bytes as bytes, ${ended} as hasEnded, body is not null
        or exists (select 1 from delivery_body b where b.position = d.position) as hasBody
      from delivery d where position > ? order by position limit ?`),
    ages: db.prepare<[number, number, number], DeliveryAge>(`
      select position, received_at as receivedAt, status in ('accepted', 'retrying') as waits, status = 'running' as runs
      from delivery where position > ? and position <= ? order by position limit ?`),
    latest: db.prepare<[], { position: number }>(`select max(position) as position from delivery`),
    heads: db.prepare<[string], Row>(
      `select ${head}, null as body from delivery d where position in (select value from json_each(?))`,
    ),
    rowsBefore: db.prepare<[string, number, number], DeliveryFacts>(
      `select ${facts} from delivery where namespace_id = ? and position < ? order by position desc limit ?`,
    ),
    facts: db.prepare<[string, string], DeliveryFacts>(
      `select ${facts} from delivery where +namespace_id = ? and position in (select value from json_each(?))`,
    ),
    holding: db.prepare<[{ positions: string; search: string; needle: string }], { position: number }>(`
      select d.position from delivery d left join delivery_body b using (position)
      where d.position in (select value from json_each(:positions))
        and (instr(cast(coalesce(d.body, b.body) as text), :search) > 0 or instr(outcome, :search) > 0
          or source = :search or request_id = :search or instance_id = :search or ${HEADERS_CONTAIN})`),
  };
}
