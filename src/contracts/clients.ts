import { z } from 'zod';
import { Scopes } from './access.ts';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { pageQuery } from './hosts.ts';
import { DisplayName, NamespaceId } from './ids.ts';

export const Client = z.object({
  clientId: z.string(),
  hostId: z.string(),
  namespaceId: z.string(),
  name: z.string(),
  valid: z.boolean(),
  createdAt: z.number().describe('Epoch milliseconds, as all times here'),
  revokedAt: z.number().nullable(),
  scopes: z
    .array(z.string())
    .nullable()
    .optional()
    .describe('Only permissions of the client; null: no scopes'),
});
export type Client = z.infer<typeof Client>;

/**
 * Creates credentials with which a client obtains access tokens. @spec Client credentials and token pair;
 * docs/gateway.md "Who may call"
 */
export const createClientCredentials = endpoint({
  method: 'POST',
  path: '/api/v1/clients',
  summary: 'Create client credentials; the secret is shown only once',
  tags: ['clients'],
  status: 201,
  body: z.strictObject({
    namespaceId: NamespaceId.optional().describe("Default: the caller's"),
    name: DisplayName,
    scopes: Scopes.optional().describe('Only permissions of the client; default: no restriction'),
  }),
  reply: z.object({
    clientId: z.string(),
    clientSecret: z.string(),
    hostId: z.string(),
    namespaceId: z.string(),
    scopes: z.array(z.string()).optional(),
  }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN'],
});

export const listClients = endpoint({
  method: 'GET',
  path: '/api/v1/clients',
  summary: 'List clients, including those of hosts, without their secrets',
  tags: ['clients'],
  query: z.strictObject({ namespaceId: NamespaceId.optional(), ...pageQuery }),
  reply: page(Client),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

export const revokeClient = endpoint({
  method: 'DELETE',
  path: '/api/v1/clients/:clientId',
  summary: 'Revoke a client: its credentials and tokens stop working immediately',
  tags: ['clients'],
  params: z.object({ clientId: z.string().min(1).max(256) }),
  reply: z.object({ revoked: z.literal(true) }),
  errors: ['UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND', 'CONFLICT'],
});
