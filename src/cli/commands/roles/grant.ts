import { z } from 'zod';
import { grantRole, type ReplyOf, Role } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { allNamespacesFlag, namespaceText, roleNamespace, subjectArgument } from './role-arguments.ts';

/** @spec docs/gateway.md "Roles" */
export const grant = defineCommand({
  name: 'roles grant',
  summary: 'Restrict a client, host id or claim to a role in a namespace',
  example: 'svc roles grant host:ci viewer --namespace acme',
  args: z.object({
    subject: subjectArgument,
    role: Role.describe('viewer, editor or admin'),
    allNamespaces: allNamespacesFlag,
  }),
  async run({ subject, role, allNamespaces }, { client, globals }) {
    return ok(
      await client.call(grantRole, { body: { subject, role, ...roleNamespace(allNamespaces, globals) } }),
    );
  },
  text: ({ subject, role, namespaceId, previous }: ReplyOf<typeof grantRole>) =>
    `${subject} has the role ${role} in ${namespaceText(namespaceId)}${previous ? ` (before: ${previous})` : ''}.`,
});
