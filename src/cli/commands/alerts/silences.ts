import { z } from 'zod';
import { type AlertSilence, listAlertSilences } from '../../../contracts/index.ts';
import { allPages } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec docs/alerts.md */
export const silences = defineCommand({
  name: 'alerts silences',
  summary: 'List silences',
  example: 'svc alerts silences',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const items = await allPages((cursor) =>
      client.call(listAlertSilences, { query: { limit: 500, ...(cursor ? { cursor } : {}) } }),
    );
    return ok(pageOf(items, flags, ({ id }) => id));
  },
  text({ items, nextCursor }: ListPage<AlertSilence>, style) {
    if (items.length === 0) return 'There are no silences.';
    const rows = items.map(({ id, matcher, until, active, comment }) => [
      active ? timeText(until) : 'ended',
      Object.entries(matcher)
        .map(([field, value]) => `${field}=${value}`)
        .join(' '),
      comment ?? '',
      id,
    ]);
    return table(['until', 'matches', 'comment', 'id'], rows, style) + moreLine(nextCursor, style);
  },
});
