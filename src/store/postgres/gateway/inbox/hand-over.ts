import type { PostgresDatabase } from '../../database.ts';
import { storable } from '../../storable.ts';
import { type MarkerTime, markerNow } from './marker-time.ts';

export interface HandOver {
  webhookId: string;
  steps: string;
  marker: { digest: Uint8Array; expiresAt: number } | undefined;
}

/** Makes a running sync delivery an async one. Its marker becomes `done`. */
export async function handOver(
  database: PostgresDatabase,
  time: MarkerTime,
  { webhookId, steps, marker }: HandOver,
): Promise<void> {
  await database.sql(HAND_OVER, [
    webhookId,
    storable(steps),
    marker?.digest ?? null,
    marker ? time.untilMs(marker.expiresAt) : null,
    time.now(),
  ]);
}

const HAND_OVER = `
  with before as (
    select webhook_id, svc.record_bytes(headers, steps, outcome) as bytes from svc.delivery
    where webhook_id = $1::uuid and status = 'running' for update
  ), handed as (
    update svc.delivery d set mode = 'async', http_status = 202, steps = trim(both ';' from d.steps || ';' || $2::text)
    from before where d.webhook_id = before.webhook_id
    returning svc.record_bytes(d.headers, d.steps, d.outcome) - before.bytes as grown
  ), counted as (
    insert into svc.delivery_usage (records, unhandled, bytes) select 0, 0, grown from handed
  )
  insert into svc.delivery_marker (digest, state, expires_at, webhook_id)
  select $3::bytea, 'done', ${markerNow('$5')} + $4::bigint, $1::uuid from handed where $3::bytea is not null
  on conflict (digest) do update set state = 'done', expires_at = excluded.expires_at`;
