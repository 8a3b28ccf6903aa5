import { ANALYTICS_SCHEMA, type AnalyticsEvent } from '../../contracts/index.ts';
import type { KeptEvent, NumberedEvent } from '../ports/telemetry.ts';

/** A stored event. `actor`, `ctx` and `payload` contain JSON. */
export interface EventRow {
  id?: number;
  event_id: string;
  type: string;
  ts: number;
  ingest_ts: number;
  product: string;
  version: string;
  run_id: string;
  tenant_id: string | null;
  actor: string | null;
  ctx: string | null;
  payload: string | null;
  occurrences: number;
}

/** Returns the columns of an event. */
export function eventRowOf({ event, ts, ingestTs, tenantId, occurrences }: KeptEvent): EventRow {
  return {
    event_id: event.id,
    type: event.type,
    ts,
    ingest_ts: ingestTs,
    product: event.source.product,
    version: event.source.version,
    run_id: event.runId,
    tenant_id: tenantId,
    actor: event.actor === undefined ? null : JSON.stringify(event.actor),
    ctx: event.ctx === undefined ? null : JSON.stringify(event.ctx),
    payload: event.payload === undefined ? null : JSON.stringify(event.payload),
    occurrences,
  };
}

/** Returns the key of an actor in event counts. */
export function actorKey(actor: AnalyticsEvent['actor']): string {
  return actor === undefined ? '' : `${actor.type}:${actor.id ?? actor.name ?? ''}`;
}

/** Returns the event of a row. */
export function eventOf(row: EventRow): AnalyticsEvent {
  return {
    id: row.event_id,
    schema: ANALYTICS_SCHEMA,
    type: row.type,
    ts: new Date(row.ts).toISOString(),
    ingestTs: new Date(row.ingest_ts).toISOString(),
    source: { product: row.product, version: row.version },
    runId: row.run_id,
    ...(row.actor === null ? {} : { actor: JSON.parse(row.actor) }),
    ...(row.ctx === null ? {} : { ctx: JSON.parse(row.ctx) }),
    ...(row.payload === null ? {} : { payload: JSON.parse(row.payload) }),
  };
}

export function numberedEvent(row: EventRow): NumberedEvent {
  return { id: row.id!, record: eventOf(row) };
}
