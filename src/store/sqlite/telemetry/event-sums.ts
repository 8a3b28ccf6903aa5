import { days, hours } from '../../../kit/time/duration.ts';
import type { EventFilter } from '../../ports/telemetry.ts';
import type { Database } from '../database.ts';

export const DAY_MS = days(1);
const HOUR_MS = hours(1);
/** Lengths of the periods with precomputed counts. */
export const SPANS = [HOUR_MS, DAY_MS] as const;

/** Sum of the events that share the grouped columns. */
export interface Group {
  day: number;
  type: string;
  product: string;
  actor: string;
  occurrences: number;
  kept: number;
}

/** Columns to group by. */
export type Column = 'day' | 'type' | 'product' | 'actor';

/** A section of a time range. Its counts are precomputed per `span`; with `span` 0, single events are counted. */
interface Part {
  span: number;
  from: number;
  to: number;
}

/**
 * Splits a range into whole days, whole hours around them and single events at the ends. Omits empty parts.
 */
export function parts(from: number, to: number): Part[] {
  return split({ span: 0, from, to }, SPANS).filter((part) => part.from < part.to);
}

function split({ span, from, to }: Part, larger: readonly number[]): Part[] {
  const [next, ...rest] = larger;
  if (next === undefined) return [{ span, from, to }];
  const start = Math.ceil(from / next) * next;
  const end = Math.floor(to / next) * next;
  if (start >= end) return [{ span, from, to }];
  return [
    { span, from, to: start },
    ...split({ span: next, from: start, to: end }, rest),
    { span, from: end, to },
  ];
}

export const EVENT_COLUMNS = { time: 'ts', tenant: 'tenant_id' } as const;

/** Returns a filter as SQL conditions on the given column names. */
export function eventConditions(
  filter: EventFilter,
  { time, tenant }: { time: string; tenant: string },
): { conditions: string[]; values: unknown[] } {
  const conditions: string[] = [];
  const values: unknown[] = [];
  const given: Array<[string, unknown]> = [
    [`${tenant} = ?`, filter.tenantId],
    ['type = ?', filter.type],
    ['product = ?', filter.source],
    [`${time} >= ?`, filter.from],
    [`${time} < ?`, filter.to],
  ];
  for (const [condition, value] of given) {
    if (value === undefined) continue;
    conditions.push(condition);
    values.push(value);
  }
  return { conditions, values };
}

/** Returns sums grouped by the given columns; the other columns are empty. */
export function sum(
  db: Database,
  { span, from, to }: Part,
  filter: EventFilter,
  by: readonly Column[],
): Group[] {
  const counted = span > 0;
  const time = counted ? 'start' : 'ts';
  const expressions: Record<Column, string> = {
    day: `${time} - ${time} % ${DAY_MS}`,
    type: 'type',
    product: 'product',
    actor: counted
      ? 'actor'
      : "coalesce(actor ->> '$.type' || ':' || coalesce(actor ->> '$.id', actor ->> '$.name', ''), '')",
  };
  const { conditions, values } = eventConditions({ ...filter, from, to }, { time, tenant: 'tenant_id' });
  const columns = (['day', 'type', 'product', 'actor'] as const).map(
    (name) => `${by.includes(name) ? expressions[name] : name === 'day' ? '0' : "''"} as ${name}`,
  );
  const sql = `
    select ${columns.join(', ')}, sum(occurrences) as occurrences, ${counted ? 'sum(kept)' : 'count(*)'} as kept
    from ${counted ? 'event_count' : 'event'}
    where ${[...(counted ? [`span = ${span}`] : []), ...conditions].join(' and ')}
    group by 1, 2, 3, 4`;
  return db.prepare<unknown[], Group>(sql).all(...values);
}
