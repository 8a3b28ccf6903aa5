import type { DeliveryRecord, NewDelivery } from '../../../ports/index.ts';
import { storable } from '../../storable.ts';

/** Columns of a record without its body, named like the fields of `DeliveryRecord`. */
export const HEAD_COLUMNS = `d.position, d.webhook_id as "webhookId", d.namespace_id as "namespaceId", d.plugin_id as "pluginId", d.event,
  d.instance_id as "instanceId", d.received_at as "receivedAt", d.source, d.request_id as "requestId", d.trace_id as "traceId",
  d.mode, d.origin, d.status, d.http_status as "httpStatus", d.duration_ms as "durationMs", d.attempts,
  d.next_attempt_at as "nextAttemptAt", d.steps, d.outcome, d.marker, d.order_key as "orderKey", d.replay_of as "replayOf",
  d.replayed_by as "replayedBy", d.body_bytes as "bodyBytes", d.headers`;

/** Selects records with their bodies from `svc.delivery d`. */
export const SELECT_WHOLE = `select ${HEAD_COLUMNS}, b.body from svc.delivery d left join svc.delivery_body b using (position)`;

/** Selects records without their bodies from `svc.delivery d`. */
export const SELECT_HEAD = `select ${HEAD_COLUMNS}, null as body from svc.delivery d`;

/** Columns of a new row that the delivery itself does not contain. */
export interface RowState
  extends Pick<DeliveryRecord, 'status' | 'steps' | 'httpStatus' | 'outcome' | 'durationMs'> {
  /** Fence token of the member that runs the delivery. */
  owner?: number | undefined;
}

export interface NewRow {
  delivery: NewDelivery;
  state: RowState;
  /** Digest of the delivery's idempotency marker. */
  marker: Uint8Array | null;
}

/** Types of the columns in the JSON of new rows. */
export const INPUT_COLUMNS = `n integer, webhook_id uuid, namespace_id text, plugin_id text, event text, instance_id text,
  received_at bigint, source text, request_id text, trace_id text, mode text, origin text, status text, http_status integer,
  duration_ms double precision, steps text, outcome text, marker text, order_key text, replay_of uuid, body_bytes integer,
  headers text, owner bigint, body_at integer, body_size integer, claim_state text, claim_for bigint`;

/** Parameters of a statement that inserts rows: all columns as JSON, and the concatenated bodies. */
export interface RowInput {
  json: string;
  bodies: Buffer;
}

/** Additional column values of a row, by column name. */
export type RowExtra = Record<string, unknown>;

/** Returns the statement parameters for rows. `extras` contains further columns of each row. */
export function rowInput(rows: readonly NewRow[], extras: readonly RowExtra[]): RowInput {
  const bodies: Uint8Array[] = [];
  let bodyAt = 0;
  const values = rows.map(({ delivery, state, marker }, n) => {
    const { body } = delivery;
    const value = {
      n,
      webhook_id: delivery.webhookId,
      namespace_id: storable(delivery.namespaceId),
      plugin_id: storable(delivery.pluginId),
      event: storable(delivery.event),
      instance_id: storable(delivery.instanceId),
      received_at: delivery.receivedAt,
      source: storable(delivery.source),
      request_id: storable(delivery.requestId),
      trace_id: storable(delivery.traceId),
      mode: delivery.mode,
      origin: delivery.origin,
      status: state.status,
      http_status: state.httpStatus,
      duration_ms: state.durationMs,
      steps: storable(state.steps),
      outcome: state.outcome === null ? null : storable(state.outcome),
      marker: marker && hexOf(marker),
      order_key: delivery.orderKey === null ? null : storable(delivery.orderKey),
      replay_of: delivery.replayOf,
      body_bytes: delivery.bodyBytes,
      headers: storable(delivery.headers),
      owner: state.owner ?? null,
      // Positions for the SQL function `substring` start at 1.
      body_at: body ? bodyAt + 1 : null,
      body_size: body?.byteLength ?? null,
      ...extras[n],
    };
    if (body) {
      bodies.push(body);
      bodyAt += body.byteLength;
    }
    return value;
  });
  return { json: JSON.stringify(values), bodies: Buffer.concat(bodies) };
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** Returns the approximate number of bytes that a row adds to its batch. */
export function bytesOf({ delivery: { body, headers } }: NewRow): number {
  return (body?.byteLength ?? 0) + headers.length;
}
