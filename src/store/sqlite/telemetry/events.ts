import type { EventFilter, KeptEvent, TelemetryQueries } from '../../ports/telemetry.ts';
import { actorKey, type EventRow, eventOf, eventRowOf, numberedEvent } from '../../telemetry/event-rows.ts';
import {
  type Column,
  DAY_MS,
  daysOf,
  type Group,
  SPANS,
  sections,
  totalsOf,
} from '../../telemetry/event-totals.ts';
import type { Database } from '../database.ts';
import { EVENT_COLUMNS, eventConditions, sum } from './event-sums.ts';

interface CountRow {
  span: number;
  start: number;
  tenantId: string;
  type: string;
  product: string;
  actor: string;
  occurrences: number;
  kept: number;
}

/**
 * Returns a function that inserts events. The function must be called in a transaction. Counts are summed first, so
 * that many events need only one row update.
 */
export function eventInserter(db: Database): (events: readonly KeptEvent[]) => void {
  const insert = db.prepare<[EventRow]>(`
    insert into event (event_id, type, ts, ingest_ts, product, version, run_id, tenant_id, actor, ctx, payload, occurrences)
    values (:event_id, :type, :ts, :ingest_ts, :product, :version, :run_id, :tenant_id, :actor, :ctx, :payload, :occurrences)`);
  const count = db.prepare<[CountRow]>(`
    insert into event_count (span, start, tenant_id, type, product, actor, occurrences, kept)
    values (:span, :start, :tenantId, :type, :product, :actor, :occurrences, :kept)
    on conflict do update set occurrences = occurrences + excluded.occurrences, kept = kept + excluded.kept`);
  return (events) => {
    for (const event of events) if (event.keep) insert.run(eventRowOf(event));
    for (const row of countsOf(events)) count.run(row);
  };
}

function countsOf(events: readonly KeptEvent[]): Iterable<CountRow> {
  const rows = new Map<string, CountRow>();
  for (const { event, ts, tenantId, occurrences, keep } of events) {
    for (const span of SPANS) {
      const row: CountRow = {
        span,
        start: ts - (ts % span),
        tenantId: tenantId ?? '',
        type: event.type,
        product: event.source.product,
        actor: actorKey(event.actor),
        occurrences,
        kept: keep ? 1 : 0,
      };
      const key = `${span}\0${row.start}\0${row.tenantId}\0${row.type}\0${row.product}\0${row.actor}`;
      const known = rows.get(key);
      if (known) {
        known.occurrences += row.occurrences;
        known.kept += row.kept;
      } else rows.set(key, row);
    }
  }
  return rows.values();
}

type EventQueries = Pick<TelemetryQueries, 'events' | 'eventsAfter' | 'latestEvents' | 'stats' | 'daily'>;

export function eventQueries(db: Database): EventQueries {
  const last = db.prepare<[], number | null>('select max(id) from event').pluck();
  const oldest = db.prepare<[], number | null>('select min(ts) from event').pluck();
  const newest = db
    .prepare<[], number | null>(`select max(start) from event_count where span = ${DAY_MS}`)
    .pluck();
  const first = db
    .prepare<[], number | null>(`select min(start) from event_count where span = ${DAY_MS}`)
    .pluck();

  /**
   * Returns sums over the filtered events, grouped by the columns in `by`. All other columns in the result are empty.
   */
  function groups(filter: EventFilter, by: readonly Column[]): Group[] {
    // Without bounds in the filter, the range covers all days with stored counts.
    const from = Math.max(filter.from ?? 0, first.get() ?? 0);
    const to = Math.min(filter.to ?? Number.MAX_SAFE_INTEGER, (newest.get() ?? 0) + DAY_MS);
    return sections(from, to).flatMap((section) => sum(db, section, filter, by));
  }
  function count(filter: EventFilter): number {
    const { conditions, values } = eventConditions(filter, EVENT_COLUMNS);
    return db
      .prepare<unknown[], number>(`select count(*) from ${source(filter)} where ${conditions.join(' and ')}`)
      .pluck()
      .get(...values)!;
  }
  return {
    events: (filter, { limit, offset }) =>
      db.read(() => {
        const { conditions, values } = eventConditions(filter, EVENT_COLUMNS);
        const items = db
          .prepare<unknown[], EventRow>(
            // If an index covers all conditions, SQLite skips the first `offset` index entries without reading their
            // rows.
            `select event.* from ${source(filter)} where ${['true', ...conditions].join(' and ')} order by ts desc, id desc limit ? offset ?`,
          )
          .all(...values, limit, offset);
        if (filter.traceId !== undefined) return { items: items.map(eventOf), total: count(filter) };
        // Stored counts include events that were deleted to free space. The total therefore starts at the oldest stored
        // event.
        const from = Math.max(filter.from ?? 0, oldest.get() ?? 0);
        const total = groups({ ...filter, from }, []).reduce((sum, { kept }) => sum + kept, 0);
        return { items: items.map(eventOf), total };
      }),
    eventsAfter: (filter, after, limit) =>
      db.read(() => {
        const { conditions, values } = eventConditions(filter, EVENT_COLUMNS);
        return db
          .prepare<unknown[], EventRow>(
            `select * from event not indexed where ${['id > ?', ...conditions].join(' and ')} order by id limit ?`,
          )
          .all(after, ...values, limit)
          .map(numberedEvent);
      }),
    latestEvents: (filter, limit) =>
      db.read(() => {
        // The cursor is read before the events, so that no concurrent event is missed.
        const after = last.get() ?? 0;
        const { conditions, values } = eventConditions(filter, EVENT_COLUMNS);
        const items = db
          .prepare<unknown[], EventRow>(
            `select * from ${source(filter)} where ${['true', ...conditions].join(' and ')} order by ts desc, id desc limit ?`,
          )
          .all(...values, limit)
          .map(numberedEvent);
        return { items: items.filter(({ id }) => id <= after).sort((a, b) => a.id - b.id), after };
      }),
    stats: (filter) => db.read(() => totalsOf(groups(filter, ['type', 'product', 'actor']))),
    daily: (filter) => db.read(() => daysOf(groups(filter, ['day', 'type']))),
  };
}

/** Names the index of traces, because the query planner has no statistics and could prefer an index of times. */
function source({ traceId }: EventFilter): string {
  return traceId === undefined ? 'event' : 'event indexed by event_trace';
}
