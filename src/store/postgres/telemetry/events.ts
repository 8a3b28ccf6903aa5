import type { AnalyticsEvent } from '../../../contracts/index.ts';
import type {
  EventDay,
  EventFilter,
  EventTotals,
  NumberedEvent,
  Paging,
  TelemetryQueries,
} from '../../ports/telemetry.ts';
import { type EventRow, eventOf, numberedEvent } from '../../telemetry/event-rows.ts';
import {
  type Column,
  daysOf,
  type Group,
  type Section,
  sections,
  totalsOf,
} from '../../telemetry/event-totals.ts';
import type { PostgresDatabase } from '../database.ts';
import { EVENT_TRACE_ID } from '../trace-schema.ts';
import { within } from './days.ts';
import { type Parameter, RecordTable, select } from './record-table.ts';
import { DAY_MS } from './schema.ts';
import { indexedText } from './texts.ts';

const COLUMNS = `id, event_id, type, ts, ingest_ts, product, version, run_id, tenant_id, actor, ctx, payload,
  occurrences`;
/** Maximum number of events of a trace that are counted. */
const MAX_COUNTED = 10_000;
const GROUPED: readonly Column[] = ['day', 'type', 'product', 'actor'];

type EventQueries = Pick<TelemetryQueries, 'events' | 'eventsAfter' | 'latestEvents' | 'stats' | 'daily'>;

export class PostgresEvents implements EventQueries {
  readonly #database: PostgresDatabase;
  readonly #table: RecordTable<EventRow, EventFilter>;

  constructor(database: PostgresDatabase) {
    this.#database = database;
    this.#table = new RecordTable(database, {
      ...{ kind: 'event', columns: COLUMNS, time: 'ts', conditions },
      searches: ({ traceId }) => traceId !== undefined,
    });
  }

  async events(filter: EventFilter, paging: Paging): Promise<{ items: AnalyticsEvent[]; total: number }> {
    const rows = await this.#table.page(filter, paging);
    if (filter.traceId !== undefined)
      return { items: rows.map(eventOf), total: await this.#table.count(filter, MAX_COUNTED) };
    // Stored counts include events that were deleted to free space, but the list does not. The total therefore starts
    // at the oldest stored event.
    const from = Math.max(filter.from ?? 0, await this.#oldest());
    const groups = await this.#groups({ ...filter, from }, []);
    return { items: rows.map(eventOf), total: groups.reduce((sum, { kept }) => sum + kept, 0) };
  }

  async eventsAfter(filter: EventFilter, after: number, limit: number): Promise<NumberedEvent[]> {
    return (await this.#table.after(filter, after, limit)).map(numberedEvent);
  }

  async latestEvents(filter: EventFilter, limit: number): Promise<{ items: NumberedEvent[]; after: number }> {
    const { rows, after } = await this.#table.latest(filter, limit);
    return { items: rows.map(numberedEvent), after };
  }

  async stats(filter: EventFilter): Promise<EventTotals> {
    return totalsOf(await this.#groups(filter, ['type', 'product', 'actor']));
  }

  async daily(filter: EventFilter): Promise<EventDay[]> {
    return daysOf(await this.#groups(filter, ['day', 'type']));
  }

  /** Returns the time of the oldest stored event, or the largest safe integer if there are no events. */
  async #oldest(): Promise<number> {
    const stored = await this.#table.stored();
    if (!stored) return Number.MAX_SAFE_INTEGER;
    const rows = await select<{ ts: number | null }>(
      this.#database,
      (p) =>
        `select min(ts) as ts from svc.event where ts >= ${p(stored.from)} and ts < ${p(stored.from + DAY_MS)}`,
    );
    return rows[0]!.ts ?? stored.from;
  }

  /** Returns sums over the filtered events, grouped by the columns in `by`. All other columns are empty. */
  async #groups(filter: EventFilter, by: readonly Column[]): Promise<Group[]> {
    const [counted] = await select<{ first: number | null; last: number | null }>(
      this.#database,
      () => `select min(start) as first, max(start) as last from svc.event_count where span = ${DAY_MS}`,
    );
    // Without bounds in the filter, the range covers all days with stored counts.
    const stored = { from: counted!.first ?? 0, to: (counted!.last ?? 0) + DAY_MS };
    const { from, to } = within(stored, filter);
    const sums = sections(from, to).map((section) => this.#sum(section, filter, by));
    return (await Promise.all(sums)).flat();
  }

  #sum({ span, from, to }: Section, filter: EventFilter, by: readonly Column[]): Promise<Group[]> {
    const isCounted = span > 0;
    const time = isCounted ? 'start' : 'ts';
    const expressions: Record<Column, string> = {
      day: `${time} - ${time} % ${DAY_MS}`,
      type: 'type',
      product: 'product',
      actor: isCounted ? 'actor' : 'actor_key',
    };
    const columns = GROUPED.map((name) => {
      if (by.includes(name)) return `${expressions[name]} as ${name}`;
      return `${name === 'day' ? '0::bigint' : "''::text"} as ${name}`;
    });
    return select<Group>(this.#database, (p) => {
      const all = [
        ...(isCounted ? [`span = ${span}`] : []),
        `${time} >= ${p(from)}`,
        `${time} < ${p(to)}`,
        ...conditions(filter, p),
      ];
      return `select ${columns.join(', ')}, sum(occurrences)::bigint as occurrences,
          ${isCounted ? 'sum(kept)' : 'count(*)'}::bigint as kept
        from svc.${isCounted ? 'event_count' : 'event'} where ${all.join(' and ')} group by 1, 2, 3, 4`;
    });
  }
}

function conditions(filter: EventFilter, parameter: Parameter): string[] {
  const columns = {
    tenant_id: filter.tenantId,
    type: filter.type,
    product: filter.source,
    [EVENT_TRACE_ID]: filter.traceId,
  };
  return Object.entries(columns).flatMap(([column, value]) =>
    value === undefined ? [] : [`${column} = ${parameter(indexedText(value))}`],
  );
}
