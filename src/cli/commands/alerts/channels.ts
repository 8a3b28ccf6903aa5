import { z } from 'zod';
import { type AlertChannel, listAlertChannels } from '../../../contracts/index.ts';
import { allPages } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';

/** @spec docs/alerts.md */
export const channels = defineCommand({
  name: 'alerts channels',
  summary: 'List the channels of alerts, and whether they fail',
  example: 'svc alerts channels',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const items = await allPages((cursor) =>
      client.call(listAlertChannels, { query: { limit: 500, ...(cursor ? { cursor } : {}) } }),
    );
    return ok(pageOf(items, flags, ({ namespaceId, name }) => `${namespaceId}/${name}`));
  },
  text({ items, nextCursor }: ListPage<AlertChannel>, style) {
    if (items.length === 0) return 'There are no channels. Add one with `svc alerts add-channel`.';
    const rows = items.map(({ name, type, failing, pending, target, namespaceId, declared, lastError }) => [
      name,
      type,
      failing ? style.red('failing') : 'ok',
      pending === 0 ? '' : String(pending),
      target,
      namespaceId,
      declared ? 'config' : 'api',
      failing ? (lastError ?? '') : '',
    ]);
    const columns = ['channel', 'type', 'state', 'pending', 'target', 'namespace', 'from', 'last error'];
    return table(columns, rows, style) + moreLine(nextCursor, style);
  },
});
