import { z } from 'zod';
import { type Client, listClients } from '../../../contracts/index.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec Client credentials and token pair */
export const list = defineCommand({
  name: 'clients list',
  summary: 'List clients, including those of hosts, without their secrets',
  example: 'svc clients list',
  idField: 'clientId',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client, globals }) {
    const namespaceId = selectedNamespace(globals);
    const items = await allPages((cursor) =>
      client.call(listClients, { query: pageQueryOf(namespaceId, cursor) }),
    );
    return ok(pageOf(items, flags, (item) => item.clientId));
  },
  text({ items, nextCursor }: ListPage<Client>, style) {
    const rows = items.map(({ clientId, name, namespaceId, valid, createdAt }) => [
      clientId,
      name,
      namespaceId,
      valid ? style.green('valid') : style.red('revoked'),
      timeText(createdAt),
    ]);
    return (
      table(['client', 'name', 'namespace', 'state', 'created'], rows, style) + moreLine(nextCursor, style)
    );
  },
});
