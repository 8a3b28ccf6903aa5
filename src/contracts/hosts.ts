import { z } from 'zod';
import { page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { DisplayName, NamespaceId, PluginId } from './ids.ts';

const Label = z.string().max(256);
/** Maximum number of labels per host. The limit keeps a page of 1,000 hosts small. */
const MAX_LABELS = 64;
const hasFewLabels = (labels: Record<string, string>): boolean => Object.keys(labels).length <= MAX_LABELS;
const Capability = z.string().min(1).max(64);

/** An x25519 public key (32 bytes, encoded as base64). */
const PublicKey = z
  .string()
  .regex(/^[A-Za-z0-9+/]{43}=$/, 'must be the 32 bytes of an x25519 public key in base64');

/** Pagination parameters of the gateway's lists. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z.string().max(256).optional(),
};

export const HostStatus = z.enum(['online', 'offline', 'revoked']);

/** A registered host, which is allowed to connect to the gateway. @spec docs/gateway.md "Who may call" */
export const Host = z.object({
  hostId: z.string(),
  clientId: z.string(),
  valid: z.boolean().describe('False after its client id is revoked'),
  name: z.string(),
  namespaceId: z.string(),
  capabilities: z.array(z.string()),
  labels: z.record(z.string(), z.string()),
  status: HostStatus,
  sessionId: z.string().nullable(),
  connectedAt: z.number().nullable().describe('Epoch milliseconds, as all times here'),
  lastSeenAt: z.number().nullable(),
  createdAt: z.number(),
  revokedAt: z.number().nullable(),
});
export type Host = z.infer<typeof Host>;

/**
 * Registers a host. The Bearer token is an enrolment token or an administrator's token. @spec Host agent registration
 */
export const registerHost = endpoint({
  method: 'POST',
  path: '/hosts/register',
  summary: 'Register a host agent; the client secret is shown only once',
  tags: ['hosts'],
  status: 201,
  body: z.strictObject({
    name: DisplayName,
    publicKey: PublicKey,
    capabilities: z.array(Capability).max(64).default([]),
    labels: z.record(Label, Label).refine(hasFewLabels, `must be at most ${MAX_LABELS} labels`).default({}),
    metadata: z.record(z.string().max(256), z.json()).default({}),
  }),
  reply: z.object({
    hostId: z.string(),
    clientId: z.string(),
    clientSecret: z.string(),
    namespaceId: z.string(),
  }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'],
});

export const inviteHost = endpoint({
  method: 'POST',
  path: '/api/v1/hosts/invite',
  summary: 'Create an enrolment token, valid for one registration within 15 minutes',
  tags: ['hosts'],
  status: 201,
  body: z.strictObject({ namespaceId: NamespaceId.optional().describe("Default: the caller's") }),
  reply: z.object({ token: z.string(), namespaceId: z.string(), expiresAt: z.number() }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN'],
});

export const listHosts = endpoint({
  method: 'GET',
  path: '/api/v1/hosts',
  summary: 'List the hosts of the namespace; for administrators who name none, of all namespaces',
  tags: ['hosts'],
  query: z.strictObject({ namespaceId: NamespaceId.optional(), ...pageQuery }),
  reply: page(Host),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

const hostParams = z.object({ hostId: z.string().min(1).max(256) });

export const getHost = endpoint({
  method: 'GET',
  path: '/api/v1/hosts/:hostId',
  summary: 'Show one host',
  tags: ['hosts'],
  params: hostParams,
  reply: Host,
  errors: ['UNAUTHORIZED', 'HOST_NOT_FOUND'],
});

/** Revokes a host. A revoked host can no longer authenticate. @spec Gateway: authentication and hosts */
export const revokeHost = endpoint({
  method: 'DELETE',
  path: '/api/v1/hosts/:hostId',
  summary: 'Revoke a host: its client id and tokens stop working and its sockets are closed',
  tags: ['hosts'],
  params: hostParams,
  reply: z.object({ revoked: z.literal(true) }),
  errors: ['UNAUTHORIZED', 'FORBIDDEN', 'HOST_NOT_FOUND'],
});

/** Gzip stream of a plugin's files. Each file is a JSON line with name and size, followed by the file's bytes. */
export const pluginPackage = endpoint({
  method: 'GET',
  path: '/api/v1/marketplace/plugins/:pluginId/package',
  summary: 'Download the files of a plugin, for hosts that run it',
  tags: ['hosts'],
  hidden: true,
  params: z.object({ pluginId: PluginId }),
  reply: z.unknown(),
  errors: ['UNAUTHORIZED', 'PLUGIN_NOT_FOUND'],
});
