import { BatchWriter } from '../../batch-writer.ts';
import type { PostgresDatabase } from '../../database.ts';
import { type MarkerTime, markerNow } from './marker-time.ts';
import { bytesOf, INPUT_COLUMNS, type NewRow, rowInput } from './rows.ts';
import { FIRST_POSITION, IS_UNHANDLED, POSITIONS_PER_TRANSACTION } from './schema.ts';

/** Claim of the idempotency marker of a row. A row without a claim is always inserted. */
export interface Claim {
  state: 'pending' | 'done';
  expiresAt: number;
}

export interface Insert {
  row: NewRow;
  claim: Claim | null;
  /** Id of the original delivery if this delivery is a replay. */
  replayed: string | null;
}

const MAX_ITEMS = 256;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_RUNNING = 2;

/**
 * Returns a batch writer for new deliveries. The result for a delivery is false if another delivery holds its
 * idempotency marker.
 */
export function deliveryInserts(database: PostgresDatabase, time: MarkerTime): BatchWriter<Insert, boolean> {
  return new BatchWriter({
    write: (inserts) => write(database, inserts, time),
    sizeOf: ({ row }) => bytesOf(row),
    maxRunning: MAX_RUNNING,
    maxItems: Math.min(MAX_ITEMS, POSITIONS_PER_TRANSACTION),
    maxBytes: MAX_BYTES,
  });
}

async function write(
  database: PostgresDatabase,
  inserts: readonly Insert[],
  time: MarkerTime,
): Promise<boolean[]> {
  const extras = inserts.map(({ claim, replayed }) => ({
    claim_state: claim?.state ?? null,
    claim_for: claim && time.untilMs(claim.expiresAt),
    replayed,
  }));
  const rows = inserts.map(({ row }) => row);
  const { json, bodies } = rowInput(rows, extras);
  const values = [json, bodies, time.now()];
  const hasReplays = inserts.some(({ replayed }) => replayed !== null);
  const result = await (hasReplays
    ? database.sql<{ n: number }>(INSERT_WITH_REPLAYS, values)
    : database.prepared<{ n: number }>('insert deliveries', INSERT, values));
  const inserted = new Set(result.rows.map(({ n }) => n));
  return inserts.map((_, n) => inserted.has(n));
}

/**
 * Idempotency markers are locked in the order of their digests, so that batches of several gateways cannot deadlock.
 */
const insertWith = (furtherStep: string): string => `
  with input as materialized (
    select i.*, ${FIRST_POSITION} + n as position
    from json_to_recordset($1::json) as i (${INPUT_COLUMNS}, replayed uuid)
  ), claimed as (
    insert into svc.delivery_marker as held (digest, state, expires_at, webhook_id)
    select decode(marker, 'hex'), claim_state, ${markerNow('$3')} + claim_for, webhook_id from input
    where claim_state is not null order by marker
    on conflict (digest) do update
      set state = excluded.state, expires_at = excluded.expires_at, webhook_id = excluded.webhook_id
      where held.expires_at <= ${markerNow('$3')}
    returning webhook_id
  ), written as (
    insert into svc.delivery (position, webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source,
      request_id, trace_id, mode, origin, status, http_status, duration_ms, steps, outcome, marker, order_key, replay_of,
      body_bytes, headers, owner)
    select position, webhook_id, namespace_id, plugin_id, event, instance_id, received_at, source, request_id, trace_id,
      mode, origin, status, http_status, duration_ms, steps, outcome, decode(marker, 'hex'), order_key, replay_of,
      body_bytes, headers, owner
    from input
    where claim_state is null or webhook_id in (select webhook_id from claimed)
    on conflict (webhook_id) do nothing
    returning position, status, svc.record_bytes(headers, steps, outcome) as bytes
  ), bodies as (
    insert into svc.delivery_body (position, body)
    select position, substring($2::bytea from body_at for body_size) from input
    where body_at is not null and position in (select position from written)
    returning octet_length(body) as bytes
  ), counted as (
    insert into svc.delivery_usage (records, unhandled, bytes)
    select count(*), count(*) filter (where ${IS_UNHANDLED}),
      coalesce(sum(bytes), 0) + (select coalesce(sum(bytes), 0) from bodies)
    from written having count(*) > 0
  )${furtherStep}
  select n from input where position in (select position from written)`;

/** The statement scans no table, so a plan for empty tables remains good when the tables grow. */
const INSERT = insertWith('');

const INSERT_WITH_REPLAYS = insertWith(`, linked as (
    update svc.delivery as original set replayed_by = input.webhook_id
    from input where original.webhook_id = input.replayed and input.position in (select position from written)
  )`);
