import { queryLogs } from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import type { LogQuery } from './filter.ts';

const MAX_PAGE = 1000;

/** Returns the latest `count` log records in the platform's store as JSON lines, oldest first. */
export async function latestStored(
  { client }: Pick<CommandContext, 'client'>,
  query: LogQuery,
  count: number,
): Promise<string[]> {
  const lines: string[] = [];
  while (lines.length < count) {
    const limit = Math.min(MAX_PAGE, count - lines.length);
    const { items } = await client.call(queryLogs, { query: { ...query, limit, offset: lines.length } });
    lines.push(...items.map((record) => JSON.stringify(record)));
    if (items.length < limit) break;
  }
  return lines.reverse();
}
