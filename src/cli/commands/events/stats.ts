import { z } from 'zod';
import { dailyEventStats, eventStats, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { eventFlags, eventQuery } from './arguments.ts';

type Stats = ReplyOf<typeof eventStats> & { daily: ReplyOf<typeof dailyEventStats>['items'] };

const MAX_BAR_CHARS = 40;
const MAX_DAYS = 31;
const MAX_ROWS = 15;

/** @spec REST API: analytics; docs/observability.md "Analytics" */
export const stats = defineCommand({
  name: 'events stats',
  summary: 'Count events by type, source, actor and day',
  example: 'svc events stats --since 7d',
  args: z.object(eventFlags),
  async run(flags, { client, globals, clock }) {
    const query = eventQuery(flags, globals, clock.now());
    const [totals, { items: daily }] = await Promise.all([
      client.call(eventStats, { query }),
      client.call(dailyEventStats, { query }),
    ]);
    return ok({ ...totals, daily });
  },
  text({ total, byType, bySource, byActor, daily }: Stats, style) {
    if (total === 0) return 'No matching events.';
    const days = daily.slice(-MAX_DAYS).map((day): [string, number] => [day.date, day.total]);
    return [
      chart('type', largest(byType), style),
      chart('source', largest(bySource), style),
      chart('actor', largest(byActor), style),
      chart('day (UTC)', days, style),
      `${total} in total`,
    ]
      .filter(Boolean)
      .join('\n\n');
  },
});

function largest(sums: Record<string, number>): Array<[string, number]> {
  return Object.entries(sums)
    .sort(([, a], [, b]) => b - a)
    .slice(0, MAX_ROWS);
}

/** Formats a bar chart. The longest bar stands for the largest value. */
function chart(heading: string, rows: Array<[string, number]>, style: Style): string {
  if (rows.length === 0) return '';
  const max = Math.max(...rows.map(([, count]) => count));
  const names = Math.max(heading.length, ...rows.map(([name]) => name.length));
  const digits = String(max).length;
  const bar = (count: number): string => '█'.repeat(Math.max(1, Math.round((count / max) * MAX_BAR_CHARS)));
  return [
    style.dim(heading.padEnd(names)),
    ...rows.map(
      ([name, count]) =>
        `${name.padEnd(names)}  ${String(count).padStart(digits)}  ${style.green(bar(count))}`,
    ),
  ].join('\n');
}
