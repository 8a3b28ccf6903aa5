import { z } from 'zod';
import { type Connection, listConnections } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { statusText } from './connection-text.ts';

/** @spec docs/connections.md */
export const list = defineCommand({
  name: 'connections list',
  summary: 'List OAuth 2 connections with their status',
  example: 'svc connections list',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const { items } = await client.call(listConnections, {});
    return ok(pageOf(items, flags, ({ name }) => name));
  },
  text({ items, nextCursor }: ListPage<Connection>, style) {
    if (items.length === 0) return 'There are no connections. Create one with `svc connections create`.';
    const rows = items.map(({ name, status, provider, tokenUrl, account, expiresAt }) => [
      name,
      statusText(status, style),
      provider ?? new URL(tokenUrl).host,
      account ?? '-',
      timeText(expiresAt),
    ]);
    const columns = ['connection', 'status', 'provider', 'account', 'expires'];
    return table(columns, rows, style) + moreLine(nextCursor, style);
  },
});
