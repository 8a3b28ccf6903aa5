import { z } from 'zod';
import { listRoles, revokeRole } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { allNamespacesFlag, roleNamespace, subjectArgument } from './role-arguments.ts';

/** @spec docs/gateway.md "Roles" */
export const revoke = defineCommand({
  name: 'roles revoke',
  summary: 'Take a role away, effective immediately',
  example: 'svc roles revoke host:ci --namespace acme',
  args: z.object({ subject: subjectArgument, allNamespaces: allNamespacesFlag }),
  async run({ subject, allNamespaces }, { client, globals, ui }) {
    const query = { subject, ...roleNamespace(allNamespaces, globals) };
    const reply = await client.call(revokeRole, { query });
    const { items } = await client.call(listRoles, { query: { subject } });
    if (items.length === 0) ui.warn('This was its last role: roles no longer restrict it.');
    return ok(reply);
  },
  text: () => 'Revoked.',
});
