import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { pageQuery } from './hosts.ts';
import { HostId } from './ids.ts';
import { Role, RoleNamespace } from './role.ts';

const SUBJECT = /^(?:client|host):.+$|^claim:[^=]+=.+$/;

/**
 * The callers that a role applies to: `client:<client id>`, `host:<host id>` of static and minted tokens, or
 * `claim:<name>=<value>` of tokens of the identity provider.
 */
export const RoleSubject = HostId.refine(
  (text) => SUBJECT.test(text),
  'must be client:<client id>, host:<host id> or claim:<name>=<value>',
);
export type RoleSubject = z.infer<typeof RoleSubject>;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/;
const NAMED_SCOPES = ['queue', 'mcp'] as const;
const FIXED_SCOPES = ['deliveries:read', 'messages:send'] as const;

/**
 * Permission of a client with scopes: `deliveries:read`, `messages:send`, `queue:<name>` or `mcp:<tool>`. @spec
 * docs/gateway.md "Scopes"
 */
export const Scope = z
  .string()
  .max(256)
  .refine(
    isScope,
    'must be deliveries:read, messages:send, queue:<name> or mcp:<tool>; names consist of letters, digits and . _ : / @ -',
  )
  .meta({ id: 'Scope' });
export type Scope = z.infer<typeof Scope>;

function isScope(text: string): boolean {
  if ((FIXED_SCOPES as readonly string[]).includes(text)) return true;
  return NAMED_SCOPES.some((kind) => text.startsWith(`${kind}:`) && NAME.test(text.slice(kind.length + 1)));
}

/** The scopes of a client, without duplicates. Null gives the client all rights of its role again. */
export const Scopes = z
  .array(Scope)
  .min(1)
  .max(64)
  .transform((scopes) => [...new Set(scopes)].sort());

/** Restrictions of a caller. They exist only within the gateway. */
export interface CallerAccess {
  /** Role per namespace, or null for a caller without any role, which keeps all its rights. */
  readonly roles: ReadonlyMap<string, Role> | null;
  /** The only permissions of the caller, or null for a caller without scopes. */
  readonly scopes: readonly string[] | null;
  /** Whether the config gives the caller a role for all namespaces, so that it may act outside its own one. */
  readonly actsEverywhere?: boolean;
}

export const RoleGrant = z.object({
  subject: z.string(),
  namespaceId: z.string().describe('"*": all namespaces'),
  role: Role,
  grantedBy: z.string().describe('Host id of the administrator'),
  grantedAt: z.number().describe('Epoch milliseconds'),
});
export type RoleGrant = z.infer<typeof RoleGrant>;

const tags = ['access'];

export const listRoles = endpoint({
  method: 'GET',
  path: '/api/v1/access/roles',
  summary: 'List the roles of clients, tokens and claims',
  tags,
  query: z.strictObject({
    subject: RoleSubject.optional(),
    namespaceId: RoleNamespace.optional(),
    ...pageQuery,
  }),
  reply: page(RoleGrant),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

export const grantRole = endpoint({
  method: 'PUT',
  path: '/api/v1/access/roles',
  summary: 'Give a role; it replaces the role of the subject in this namespace',
  tags,
  body: z.strictObject({
    subject: RoleSubject,
    role: Role,
    namespaceId: RoleNamespace.optional().describe('Default: the namespace of the caller; "*": all'),
  }),
  reply: RoleGrant.extend({ previous: Role.nullable() }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND', 'CONFLICT'],
});

export const revokeRole = endpoint({
  method: 'DELETE',
  path: '/api/v1/access/roles',
  summary: 'Take a role away; it is in force on all gateways when the call returns',
  tags,
  query: z.strictObject({ subject: RoleSubject, namespaceId: RoleNamespace.optional() }),
  reply: z.object({ revoked: z.literal(true) }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND'],
});

export const setClientScopes = endpoint({
  method: 'PUT',
  path: '/api/v1/clients/:clientId/scopes',
  summary: 'Set the scopes of a client; null removes the restriction',
  tags: ['clients'],
  params: z.object({ clientId: z.string().min(1).max(256) }),
  body: z.strictObject({ scopes: Scopes.nullable() }),
  reply: z.object({ clientId: z.string(), scopes: z.array(z.string()).nullable() }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND', 'CONFLICT'],
});
