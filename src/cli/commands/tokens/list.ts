import { z } from 'zod';
import { listTokens, type MintedToken } from '../../../contracts/index.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec docs/gateway.md "Who may call" */
export const list = defineCommand({
  name: 'tokens list',
  summary: 'List unexpired access tokens created with svc tokens mint',
  example: 'svc tokens list',
  idField: 'jti',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client, globals }) {
    const namespaceId = selectedNamespace(globals);
    const items = await allPages((cursor) =>
      client.call(listTokens, { query: pageQueryOf(namespaceId, cursor) }),
    );
    return ok(pageOf(items, flags, (item) => item.jti));
  },
  text({ items, nextCursor }: ListPage<MintedToken>, style) {
    if (items.length === 0) return 'There are no unexpired tokens.';
    const rows = items.map(({ jti, hostId, namespaceId, expiresAt, revokedAt }) => [
      jti,
      hostId,
      namespaceId,
      revokedAt === null ? style.green('valid') : style.red('revoked'),
      timeText(expiresAt),
    ]);
    return (
      table(['id', 'host id', 'namespace', 'state', 'expires'], rows, style) + moreLine(nextCursor, style)
    );
  },
});
