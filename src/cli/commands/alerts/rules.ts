import { z } from 'zod';
import { type AlertRule, listAlertRules } from '../../../contracts/index.ts';
import { allPages } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';

/** @spec docs/alerts.md */
export const rules = defineCommand({
  name: 'alerts rules',
  summary: 'List the rules of alerts',
  example: 'svc alerts rules',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const items = await allPages((cursor) =>
      client.call(listAlertRules, { query: { limit: 500, ...(cursor ? { cursor } : {}) } }),
    );
    return ok(pageOf(items, flags, ({ namespaceId, name }) => `${namespaceId}/${name}`));
  },
  text({ items, nextCursor }: ListPage<AlertRule>, style) {
    if (items.length === 0) return 'There are no rules. Add one with `svc alerts add-rule`.';
    const rows = items.map(({ name, kind, channels, enabled, firing, namespaceId, declared, faults }) => [
      name,
      kind,
      faults.length > 0
        ? style.red('fault')
        : enabled
          ? firing > 0
            ? style.red(`${firing} firing`)
            : 'ok'
          : 'off',
      channels.join(', '),
      namespaceId,
      declared ? 'config' : 'api',
      faults.join(' '),
    ]);
    const columns = ['rule', 'kind', 'state', 'channels', 'namespace', 'from', 'faults'];
    return table(columns, rows, style) + moreLine(nextCursor, style);
  },
});
