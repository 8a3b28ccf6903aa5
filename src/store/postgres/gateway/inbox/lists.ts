import { headerNeedle, MASKED_VALUE, PAIRS_START } from '../../../../kit/data/recorded-headers.ts';
import type { DeliveryCursor, DeliveryFilter, DeliveryPage, DeliveryRecord } from '../../../ports/index.ts';
import type { PostgresDatabase } from '../../database.ts';
import { storable } from '../../storable.ts';
import { SELECT_HEAD } from './rows.ts';

export interface ListOptions extends DeliveryFilter {
  limit: number;
  before?: DeliveryCursor | undefined;
  after?: DeliveryCursor | undefined;
}

/**
 * Returns one page of the deliveries of a namespace, without bodies. The order is newest first, or oldest first if
 * `after` is given.
 */
export async function listDeliveries(
  database: PostgresDatabase,
  namespaceId: string,
  options: ListOptions,
): Promise<DeliveryPage> {
  const { text, values } = statementOf(namespaceId, options);
  const { rows } = await database.sql<DeliveryRecord>(text, values);
  const items = rows.slice(0, options.limit);
  const last = items.at(-1);
  const next = rows.length > options.limit && last ? last : null;
  return { items, next: next && { receivedAt: next.receivedAt, position: next.position } };
}

function statementOf(
  namespaceId: string,
  { status, pluginId, event, since, search, before, after, limit }: ListOptions,
): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const parameter = (value: unknown): string => `$${values.push(value)}`;
  const conditions = [`d.namespace_id = ${parameter(namespaceId)}`];
  if (status) conditions.push(`d.status = any(${parameter(status)})`);
  // With this condition, the planner can use the small index of deliveries that did not succeed.
  if (status && !status.includes('succeeded')) conditions.push(`d.status <> 'succeeded'`);
  if (pluginId !== undefined) conditions.push(`d.plugin_id = ${parameter(storable(pluginId))}`);
  if (event !== undefined) conditions.push(`d.event = ${parameter(storable(event))}`);
  if (since !== undefined) conditions.push(`d.received_at >= ${parameter(since)}`);
  if (search !== undefined)
    conditions.push(containing(parameter(storable(search)), parameter(headerNeedle(storable(search)))));
  const edge = after ?? before;
  if (edge) {
    const place = `(${parameter(edge.receivedAt)}, ${parameter(edge.position)})`;
    conditions.push(`(d.received_at, d.position) ${after ? '>' : '<'} ${place}`);
  }
  const direction = after ? '' : 'desc';
  const text = `${SELECT_HEAD} where ${conditions.join(' and ')}
    order by d.received_at ${direction}, d.position ${direction} limit ${parameter(limit + 1)}`;
  return { text, values };
}

/**
 * Returns the condition of a search for a text. Bodies are compared as bytes, because bodies can contain invalid UTF-8.
 */
function containing(text: string, needle: string): string {
  return `(strpos(d.outcome, ${text}::text) > 0 or d.source = ${text} or d.request_id = ${text} or d.instance_id = ${text}
    or ${headersContain(text, needle)}
    or exists (select from svc.delivery_body b
      where b.position = d.position and position(convert_to(${text}, 'UTF8') in b.body) > 0))`;
}

/**
 * Compares the texts of `searchedHeaders`. Headers without the needle are not parsed, and neither are headers with
 * characters that PostgreSQL refuses in JSON.
 */
function headersContain(text: string, needle: string): string {
  return `case when strpos(d.headers, ${needle}::text) > 0 and starts_with(d.headers, '${PAIRS_START}')
      and d.headers !~ '\\\\u(0000|d[89a-f])' then exists (
        select from json_array_elements(d.headers::json) as header (pair) where pair ->> 0 not like ':%' and strpos(
          case pair ->> 1 when '${MASKED_VALUE}' then pair ->> 0 else (pair ->> 0) || ': ' || (pair ->> 1) end,
          ${text}::text) > 0) end`;
}
