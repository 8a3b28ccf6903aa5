import { z } from 'zod';
import { parseSince } from './commands/logs/filter.ts';
import type { Style } from './style.ts';
import { table } from './table.ts';

/** Flags of the commands that count per hour. */
export const countFlags = {
  since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time; default: 24 hours ago'),
  until: z.string().optional().describe('end: like --since; default: now'),
};

export function countQuery(
  { since, until }: { since?: string | undefined; until?: string | undefined },
  now: number,
): { from?: number; to?: number } {
  return {
    ...(since === undefined ? {} : { from: parseSince(since, now) }),
    ...(until === undefined ? {} : { to: parseSince(until, now, '--until') }),
  };
}

/** Returns a table with a row per hour and their sums. Only the columns in `columns` are shown, in this order. */
export function countsTable<Counts extends Record<string, number>>(
  { items, totals }: { items: ReadonlyArray<Counts & { hour: number }>; totals: Counts },
  columns: ReadonlyArray<keyof Counts & string>,
  style: Style,
): string {
  const numbers = (counts: Counts): string[] =>
    columns.map((column) => {
      const text = String(counts[column]!);
      return column === 'failed' && counts[column]! > 0 ? style.red(text) : text;
    });
  const rows = items.map((item) => [hourText(item.hour), ...numbers(item)]);
  return table(['hour', ...columns], [...rows, ['all', ...numbers(totals)]], style);
}

/** Formats the start of an hour as `2026-11-21 08:00Z`. */
function hourText(hour: number): string {
  return `${new Date(hour).toISOString().slice(0, 16).replace('T', ' ')}Z`;
}
