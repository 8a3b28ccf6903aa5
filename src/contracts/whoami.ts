import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { Role } from './role.ts';

/** Returns the identity of the caller. @spec Authentication 1; docs/gateway.md "Who may call" */
export const whoAmI = endpoint({
  method: 'GET',
  path: '/api/v1/whoami',
  summary: 'Show the identity of the token',
  tags: ['auth'],
  reply: z.object({
    hostId: z.string(),
    namespaceId: z.string(),
    kind: z.enum(['static', 'access', 'container', 'oauth', 'oidc']),
    admin: z.boolean().describe('Whether it may act in other namespaces'),
    expiresAt: z.number().nullable().describe('Epoch milliseconds; null: never'),
    role: Role.nullable().optional().describe('Role in this namespace; absent: no role restricts the caller'),
    scopes: z.array(z.string()).optional().describe('Only permissions; absent: no scopes'),
  }),
  errors: ['UNAUTHORIZED'],
});
