import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { pageQuery } from './hosts.ts';
import { ChosenHostId, NamespaceId } from './ids.ts';

const MAX_TTL_SECONDS = 10 * 365 * 24 * 3600;

export const MintedToken = z.object({
  jti: z.string(),
  hostId: z.string(),
  namespaceId: z.string(),
  createdBy: z.string(),
  createdAt: z.number().describe('Epoch milliseconds, as all times here'),
  expiresAt: z.number(),
  revokedAt: z.number().nullable(),
});
export type MintedToken = z.infer<typeof MintedToken>;

/** Issues an access token with the given host id, namespace and TTL. @spec docs/gateway.md "Who may call" */
export const mintToken = endpoint({
  method: 'POST',
  path: '/api/v1/tokens',
  summary: 'Create an access token; it is shown only once',
  tags: ['tokens'],
  status: 201,
  body: z.strictObject({
    hostId: ChosenHostId,
    namespaceId: NamespaceId.optional().describe("Default: the caller's"),
    ttlSeconds: z.number().int().min(1).max(MAX_TTL_SECONDS).default(3600),
  }),
  reply: z.object({
    token: z.string(),
    jti: z.string(),
    hostId: z.string(),
    namespaceId: z.string(),
    expiresAt: z.number(),
  }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'CONFLICT'],
});

export const listTokens = endpoint({
  method: 'GET',
  path: '/api/v1/tokens',
  summary: 'List unexpired manually created tokens; the tokens themselves are not stored',
  tags: ['tokens'],
  query: z.strictObject({ namespaceId: NamespaceId.optional(), ...pageQuery }),
  reply: page(MintedToken),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

export const revokeToken = endpoint({
  method: 'DELETE',
  path: '/api/v1/tokens/:jti',
  summary: 'Revoke a token by its id; it stops working immediately',
  tags: ['tokens'],
  params: z.object({ jti: z.string().min(1).max(256) }),
  reply: z.object({ revoked: z.literal(true) }),
  errors: ['UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND'],
});
