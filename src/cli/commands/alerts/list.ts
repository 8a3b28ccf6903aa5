import { z } from 'zod';
import { type Alert, AlertKind, AlertState, listAlerts } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { moreLine, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec docs/alerts.md */
export const list = defineCommand({
  name: 'alerts list',
  summary: 'List alerts, newest first',
  example: 'svc alerts list --state firing',
  args: z.object({
    state: AlertState.optional().describe('only alerts in this state'),
    kind: AlertKind.optional().describe('only alerts of this kind'),
    rule: z.string().optional().describe('only alerts of this rule'),
    object: z.string().optional().describe('only alerts of the delivery, message, run, … with this id'),
    limit: z.coerce.number().int().min(1).max(500).default(50).describe('alerts to show'),
    cursor: z.string().optional().describe('nextCursor of the previous page'),
  }),
  short: pageShort,
  async run({ state, kind, rule, object, limit, cursor }, { client }) {
    const filter = Object.entries({ state, kind, rule, object, cursor }).filter(
      ([, value]) => value !== undefined,
    );
    return ok(await client.call(listAlerts, { query: { limit, ...Object.fromEntries(filter) } }));
  },
  text({ items, nextCursor }: { items: Alert[]; nextCursor: string | null }, style) {
    if (items.length === 0) return 'There are no alerts.';
    const rows = items.map(({ id, state, title, count, lastAt }) => [
      timeText(lastAt),
      state === 'firing' ? style.red(state) : state,
      count > 1 ? `${title} (${count} times)` : title,
      id,
    ]);
    return table(['last', 'state', 'alert', 'id'], rows, style) + moreLine(nextCursor, style);
  },
});
