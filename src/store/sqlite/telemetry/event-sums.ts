import type { EventFilter } from '../../ports/telemetry.ts';
import { type Column, DAY_MS, type Group, type Section } from '../../telemetry/event-totals.ts';
import type { Database } from '../database.ts';
import { EVENT_TRACE_ID } from './trace-schema.ts';

export const EVENT_COLUMNS = { time: 'ts', tenant: 'tenant_id' } as const;

/** Returns the filter as SQL conditions. `time` and `tenant` are the names of the columns for time and tenant. */
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
    [`${EVENT_TRACE_ID} = ?`, filter.traceId],
  ];
  for (const [condition, value] of given) {
    if (value === undefined) continue;
    conditions.push(condition);
    values.push(value);
  }
  return { conditions, values };
}

/**
 * Returns sums over a section of a time range, grouped by the columns in `by`. Other columns in the result are empty.
 */
export function sum(
  db: Database,
  { span, from, to }: Section,
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
