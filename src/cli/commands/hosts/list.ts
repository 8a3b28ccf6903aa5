import { z } from 'zod';
import { type Host, listHosts } from '../../../contracts/index.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec docs/gateway.md "Who may call" */
export const list = defineCommand({
  name: 'hosts list',
  summary: 'List registered hosts and whether they are connected',
  example: 'svc hosts list',
  idField: 'hostId',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client, globals }) {
    const namespaceId = selectedNamespace(globals);
    const items = await allPages((cursor) =>
      client.call(listHosts, { query: pageQueryOf(namespaceId, cursor) }),
    );
    return ok(pageOf(items, flags, (item) => item.hostId));
  },
  text({ items, nextCursor }: ListPage<Host>, style) {
    if (items.length === 0) return 'No host is registered; `svc hosts invite` makes the token for one.';
    const colour = { online: style.green, offline: style.yellow, revoked: style.red };
    const rows = items.map(({ hostId, name, namespaceId, status, lastSeenAt }) => [
      hostId,
      name,
      namespaceId,
      colour[status](status),
      timeText(lastSeenAt),
    ]);
    return (
      table(['host', 'name', 'namespace', 'status', 'last seen'], rows, style) + moreLine(nextCursor, style)
    );
  },
});
