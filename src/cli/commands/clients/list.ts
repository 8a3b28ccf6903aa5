import { z } from 'zod';
import { type Client, listClients } from '../../../contracts/index.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { namedNamespace } from '../../named-namespace.ts';
import { table } from '../../style.ts';
import { timeText } from '../../time-text.ts';

/** @spec Client credentials and token pair */
export const list = defineCommand({
  name: 'clients list',
  summary: 'List clients, those of hosts included, without their secrets',
  example: 'svc clients list',
  args: z.object({}),
  async run(_args, { client, globals }) {
    const namespaceId = namedNamespace(globals);
    const items = await allPages((cursor) =>
      client.call(listClients, { query: pageQueryOf(namespaceId, cursor) }),
    );
    return ok({ items });
  },
  text({ items }: { items: Client[] }, style) {
    const rows = items.map(({ clientId, name, namespaceId, valid, createdAt }) => [
      clientId,
      name,
      namespaceId,
      valid ? style.green('valid') : style.red('revoked'),
      timeText(createdAt),
    ]);
    return table(['client', 'name', 'namespace', 'state', 'created'], rows, style);
  },
});
