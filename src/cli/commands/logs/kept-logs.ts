import { queryLogs } from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import type { LogQuery } from './filter.ts';

const PAGE = 1000;

/** The latest `count` kept records as JSON lines, oldest first. */
export async function latestKept(
  { client }: Pick<CommandContext, 'client'>,
  query: LogQuery,
  count: number,
): Promise<string[]> {
  const lines: string[] = [];
  while (lines.length < count) {
    const limit = Math.min(PAGE, count - lines.length);
    const { items } = await client.call(queryLogs, { query: { ...query, limit, offset: lines.length } });
    lines.push(...items.map((record) => JSON.stringify(record)));
    if (items.length < limit) break;
  }
  return lines.reverse();
}
