import { z } from 'zod';
import { listRoles, type RoleGrant } from '../../../contracts/index.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { namespaceText } from './role-arguments.ts';

/** @spec docs/gateway.md "Roles" */
export const list = defineCommand({
  name: 'roles list',
  summary: 'List the roles of clients, host ids and claims',
  example: 'svc roles list --namespace acme',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client, globals }) {
    const namespaceId = selectedNamespace(globals);
    const items = await allPages((cursor) =>
      client.call(listRoles, { query: pageQueryOf(namespaceId, cursor) }),
    );
    return ok(pageOf(items, flags, (role) => `${role.namespaceId}|${role.subject}`));
  },
  text({ items, nextCursor }: ListPage<RoleGrant>, style) {
    if (items.length === 0) return 'There are no roles: every caller has all rights of its token.';
    const rows = items.map(({ subject, role, namespaceId, grantedBy, grantedAt }) => [
      subject,
      role,
      namespaceText(namespaceId),
      grantedBy,
      timeText(grantedAt),
    ]);
    const head = ['subject', 'role', 'namespace', 'granted by', 'granted'];
    return table(head, rows, style) + moreLine(nextCursor, style);
  },
});
