import type { DeliveryEnd } from '../../../ports/index.ts';
import { BatchWriter } from '../../batch-writer.ts';
import type { PostgresDatabase } from '../../database.ts';
import { storable } from '../../storable.ts';
import { type MarkerTime, markerNow } from './marker-time.ts';
import { hexOf } from './rows.ts';

export interface Ending {
  webhookId: string;
  end: DeliveryEnd;
  /**
   * The marker of the delivery. If `expiresAt` is null, the marker is released, unless another delivery has claimed the
   * marker.
   */
  marker: { digest: Uint8Array; expiresAt: number | null } | undefined;
}

const MAX_ITEMS = 256;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_RUNNING = 2;

/** Returns a batch writer that stores the results of deliveries and updates their markers. */
export function deliveryEndings(database: PostgresDatabase, time: MarkerTime): BatchWriter<Ending, void> {
  return new BatchWriter({
    async write(endings) {
      await database.sql(FINISH, [inputOf(endings, time), time.now()]);
      return endings.map(() => undefined);
    },
    sizeOf: ({ end }) => end.steps.length + (end.outcome?.length ?? 0),
    maxRunning: MAX_RUNNING,
    maxItems: MAX_ITEMS,
    maxBytes: MAX_BYTES,
  });
}

function inputOf(endings: readonly Ending[], { untilMs }: MarkerTime): string {
  return JSON.stringify(
    endings.map(({ webhookId, end, marker }) => ({
      webhook_id: webhookId,
      status: end.status,
      http_status: end.httpStatus,
      steps: storable(end.steps),
      outcome: end.outcome === null ? null : storable(end.outcome),
      duration_ms: end.durationMs,
      next_attempt_at: end.nextAttemptAt ?? null,
      digest: marker ? hexOf(marker.digest) : null,
      done_for: typeof marker?.expiresAt === 'number' ? untilMs(marker.expiresAt) : null,
    })),
  );
}

/**
 * Rows are locked in the order of their ids, so that batches of several gateways cannot deadlock. Repeated writes of
 * the same result have no effect.
 */
const FINISH = `
  with input as materialized (
    select * from json_to_recordset($1::json) as i (webhook_id uuid, status text, http_status integer, steps text,
      outcome text, duration_ms double precision, next_attempt_at bigint, digest text, done_for bigint)
  ), before as (
    select d.webhook_id, svc.record_bytes(d.headers, d.steps, d.outcome) as bytes
    from svc.delivery d join input i using (webhook_id)
    where d.status <> i.status or right(d.steps, length(i.steps)) <> i.steps order by d.webhook_id for update of d
  ), ended as (
    update svc.delivery d set status = i.status, http_status = i.http_status,
      steps = trim(both ';' from d.steps || ';' || i.steps), outcome = i.outcome, duration_ms = i.duration_ms,
      next_attempt_at = i.next_attempt_at, attempts = d.attempts + 1, owner = null
    from input i join before using (webhook_id) where d.webhook_id = i.webhook_id
    returning svc.record_bytes(d.headers, d.steps, d.outcome) - before.bytes as grown
  ), counted as (
    insert into svc.delivery_usage (records, unhandled, bytes)
    select 0, 0, sum(grown) from ended having sum(grown) <> 0
  ), kept as (
    insert into svc.delivery_marker (digest, state, expires_at, webhook_id)
    select decode(digest, 'hex'), 'done', ${markerNow('$2')} + done_for, webhook_id from input
    where digest is not null and done_for is not null order by digest
    on conflict (digest) do update set state = 'done', expires_at = excluded.expires_at
  )
  delete from svc.delivery_marker m using input i
  where i.digest is not null and i.done_for is null
    and m.digest = decode(i.digest, 'hex') and m.webhook_id = i.webhook_id`;
