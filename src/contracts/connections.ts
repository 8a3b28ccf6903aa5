import { z } from 'zod';
import { NoFilters, page } from './common.ts';
import { CONNECTION_PROVIDER_IDS } from './connection-provider-ids.ts';
import { ConnectionChange, ConnectionName, ConnectionSettings } from './connection-settings.ts';
import { endpoint } from './endpoint.ts';

/** Path to which a provider sends the browser back. It is registered at the provider. */
export const OAUTH_CALLBACK = '/oauth/callback';
/** Path of the links that begin an authorization; the ticket follows. */
export const OAUTH_START = '/oauth/start';

/**
 * `pending`: not authorized yet. `expired`: the access token has expired and was not refreshed. `failed`: the
 * authorization must be repeated. `revoked`: the tokens were revoked with `POST …/revoke`.
 */
export const CONNECTION_STATUSES = ['pending', 'active', 'expired', 'failed', 'revoked'] as const;
export const ConnectionStatus = z.enum(CONNECTION_STATUSES);
export type ConnectionStatus = z.infer<typeof ConnectionStatus>;

const time = z.number().nullable().describe('Epoch milliseconds');

/** A connection, without its client secret and its tokens. */
export const Connection = z
  .object({
    name: z.string(),
    status: ConnectionStatus,
    provider: z.string().nullable().describe('Id in the catalogue; null: generic endpoints'),
    issuer: z.string().nullable(),
    authorizationUrl: z.string(),
    tokenUrl: z.string(),
    revocationUrl: z.string().nullable(),
    redirectUri: z.string().describe('To register at the provider'),
    clientId: z.string(),
    clientSecret: z
      .union([z.literal('stored'), z.object({ secret: z.string() })])
      .nullable()
      .describe('`stored`: sealed with the connection; `{secret}`: name of a stored secret; null: none'),
    scopes: z.array(z.string()).describe('Requested scopes'),
    grantedScopes: z.array(z.string()).nullable().describe('null: not known'),
    account: z.string().nullable().describe('Account at the provider, as the provider names it'),
    refreshes: z.boolean().describe('Whether the provider gave a refresh token'),
    createdAt: z.number(),
    authorizedAt: time,
    expiresAt: time.describe('Expiry of the access token; null: not known, or none'),
    lastRefreshedAt: time,
    nextRefreshAt: time,
    lastError: z.object({ code: z.string(), message: z.string(), at: z.number() }).nullable(),
  })
  .meta({ id: 'Connection' });
export type Connection = z.infer<typeof Connection>;

const authorizeLink = {
  authorizeUrl: z.string().describe('Link to open in a browser. It can be completed once'),
  authorizeUrlExpiresAt: z.number(),
};

const tags = ['connections'];
const params = z.object({ name: ConnectionName });
const readErrors = ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'] as const;
const changeErrors = [...readErrors, 'NOT_FOUND'] as const;

export const createConnection = endpoint({
  method: 'POST',
  path: '/api/v1/connections',
  summary: 'Create an OAuth 2 connection; a person then authorizes it at `authorizeUrl`',
  tags,
  status: 201,
  body: ConnectionSettings.extend({ name: ConnectionName }).refine(
    ({ provider, endpoints }) => (provider === undefined) !== (endpoints === undefined),
    'must have either provider or endpoints',
  ),
  reply: Connection.extend(authorizeLink),
  errors: [
    ...readErrors,
    'PERMISSION_DENIED',
    'NOT_FOUND',
    'CONFLICT',
    'QUOTA_EXCEEDED',
    'UPSTREAM_UNAVAILABLE',
  ],
});

export const listConnections = endpoint({
  method: 'GET',
  path: '/api/v1/connections',
  summary: 'List the OAuth 2 connections of the namespace',
  tags,
  query: NoFilters,
  reply: page(Connection),
  errors: readErrors,
});

export const getConnection = endpoint({
  method: 'GET',
  path: '/api/v1/connections/:name',
  summary: 'Show an OAuth 2 connection',
  tags,
  params,
  reply: Connection,
  errors: [...readErrors, 'NOT_FOUND'],
});

export const updateConnection = endpoint({
  method: 'PATCH',
  path: '/api/v1/connections/:name',
  summary: 'Replace the client secret of a connection, or what its next authorization asks for',
  tags,
  params,
  body: ConnectionChange.refine(
    (change) => Object.keys(change).length > 0,
    'must name clientSecret, clientAuth, scopes or authorizationParams',
  ),
  reply: Connection,
  errors: [...changeErrors, 'CONFLICT'],
});

export const authorizeConnection = endpoint({
  method: 'POST',
  path: '/api/v1/connections/:name/authorize',
  summary: 'Make a new link to authorize a connection; its tokens stay in use until then',
  tags,
  params,
  reply: Connection.extend(authorizeLink),
  errors: changeErrors,
});

export const refreshConnection = endpoint({
  method: 'POST',
  path: '/api/v1/connections/:name/refresh',
  summary: 'Refresh the access token of a connection now',
  tags,
  params,
  reply: Connection,
  errors: [...changeErrors, 'CONFLICT', 'CONNECTION_NOT_AUTHORIZED', 'CONNECTION_UNAVAILABLE'],
});

export const revokeConnection = endpoint({
  method: 'POST',
  path: '/api/v1/connections/:name/revoke',
  summary: 'Revoke the tokens of a connection at the provider where it can, and keep the connection',
  tags,
  params,
  reply: Connection.extend({
    revokedAtProvider: z.boolean().describe('False if the provider has no revocation endpoint, or refused'),
  }),
  errors: changeErrors,
});

export const deleteConnection = endpoint({
  method: 'DELETE',
  path: '/api/v1/connections/:name',
  summary: 'Revoke the tokens of a connection at the provider where it can, and delete the connection',
  tags,
  params,
  reply: z.object({ deleted: z.literal(true), revokedAtProvider: z.boolean() }),
  errors: changeErrors,
});

export const ConnectionProvider = z
  .object({
    id: z.enum(CONNECTION_PROVIDER_IDS),
    name: z.string(),
    registerUrl: z.string().describe('Page of the provider where the OAuth client is registered'),
    scopes: z.array(z.string()).describe('Default scopes'),
    variables: z.record(z.string(), z.string()).describe('Variables with their defaults'),
    pkce: z.boolean(),
    refreshes: z.string().describe('When the provider gives a refresh token'),
    revokes: z.boolean().describe('Whether tokens can be revoked at the provider'),
    notes: z.array(z.string()),
  })
  .meta({ id: 'ConnectionProvider' });
export type ConnectionProvider = z.infer<typeof ConnectionProvider>;

export const listConnectionProviders = endpoint({
  method: 'GET',
  path: '/api/v1/connection-providers',
  summary: 'List the OAuth 2 providers whose connections need no endpoints',
  tags,
  query: NoFilters,
  reply: page(ConnectionProvider),
  errors: readErrors,
});

/** Gives a service an access token for a plugin. The service has checked `permissions.connections`. */
export const connectionToken = endpoint({
  method: 'POST',
  path: '/internal/connections/token',
  hidden: true,
  body: z.strictObject({ name: ConnectionName }),
  reply: z.object({ accessToken: z.string(), expiresAt: z.number().nullable() }),
  errors: ['NOT_FOUND', 'CONNECTION_NOT_AUTHORIZED', 'CONNECTION_UNAVAILABLE', 'PERMISSION_DENIED'],
});
