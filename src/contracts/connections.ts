import { z } from 'zod';
import { NoFilters, page } from './common.ts';
import { CONNECTION_PROVIDER_IDS } from './connection-provider-ids.ts';
import { endpoint } from './endpoint.ts';
import { SecretName } from './secrets.ts';
import { isTamperProof } from './studio-config.ts';

/** Path to which a provider sends the browser back. It is registered at the provider. */
export const OAUTH_CALLBACK = '/oauth/callback';
/** Path of the links that begin an authorization; the ticket follows. */
export const OAUTH_START = '/oauth/start';

/** Name of a connection within its namespace. */
export const ConnectionName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'must start with a letter or digit and contain at most 64 letters, digits and . _ -',
  );
export type ConnectionName = z.infer<typeof ConnectionName>;

/** Visible ASCII without the characters that RFC 6749 excludes from scopes. */
const OAuthScope = z
  .string()
  .max(256)
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be one scope without spaces');
const OAuthScopes = z.array(OAuthScope).max(100);

const ProviderUrl = z
  .url({ protocol: /^https?$/, abort: true })
  .max(2048)
  .refine(isTamperProof, 'must be https, because secrets are sent to it (http is accepted for loopback only)')
  .refine((url) => {
    const { username, password, hash } = new URL(url);
    return username === '' && password === '' && hash === '';
  }, 'must have no user, password or fragment');

/** Endpoints of a provider that is not in the catalogue. */
export const ConnectionEndpoints = z
  .strictObject({
    issuer: ProviderUrl.optional().describe(
      'Issuer of the provider. Its discovery document gives the endpoints that are not named',
    ),
    authorizationUrl: ProviderUrl.optional(),
    tokenUrl: ProviderUrl.optional(),
    revocationUrl: ProviderUrl.optional(),
  })
  .refine(
    ({ issuer, authorizationUrl, tokenUrl }) =>
      issuer !== undefined || (authorizationUrl !== undefined && tokenUrl !== undefined),
    'must name issuer, or authorizationUrl and tokenUrl',
  );
export type ConnectionEndpoints = z.infer<typeof ConnectionEndpoints>;

/** Parameters of the authorization request that the platform sets itself. */
const RESERVED_PARAMS = [
  'client_id',
  'client_secret',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  'redirect_uri',
  'request',
  'request_uri',
  'response_mode',
  'response_type',
  'scope',
  'state',
];

const AuthorizationParams = z
  .record(z.string().regex(/^[A-Za-z0-9._~-]{1,64}$/), z.string().max(512))
  .refine((params) => Object.keys(params).length <= 20, 'must have at most 20 parameters')
  .refine(
    (params) => !Object.keys(params).some((name) => RESERVED_PARAMS.includes(name)),
    `must not set ${RESERVED_PARAMS.join(', ')}`,
  );

const ClientSecret = z.union([
  z
    .string()
    .min(1)
    .max(8192)
    .regex(/^[^\0]*$/, 'must not contain NUL characters'),
  z.strictObject({ secret: SecretName.describe('Name of a stored secret') }),
]);
export type ClientSecret = z.infer<typeof ClientSecret>;

/** How the client authenticates at the token endpoint. */
export const ClientAuthMethod = z.enum(['basic', 'post', 'none']);
export type ClientAuthMethod = z.infer<typeof ClientAuthMethod>;

export const ConnectionSettings = z.strictObject({
  provider: z.enum(CONNECTION_PROVIDER_IDS).optional().describe('Id of a provider of the catalogue'),
  variables: z
    .record(z.string().max(32), z.string().regex(/^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/))
    .optional()
    .describe('Variables of the provider, such as `host` of GitLab or `tenant` of Microsoft'),
  endpoints: ConnectionEndpoints.optional().describe('Instead of a provider'),
  clientId: z
    .string()
    .min(1)
    .max(512)
    .regex(/^[\x20-\x7e]+$/, 'must be visible ASCII'),
  clientSecret: ClientSecret.optional().describe('Not needed for public clients'),
  clientAuth: ClientAuthMethod.optional().describe('Default: by the provider, else `basic`'),
  scopes: OAuthScopes.optional().describe('Default: the scopes that the provider needs'),
  authorizationParams: AuthorizationParams.optional().describe(
    'Further parameters of the authorization request',
  ),
});
export type ConnectionSettings = z.infer<typeof ConnectionSettings>;

/** What can change while a connection exists. Its client and its endpoints belong to its tokens, and cannot. */
export const ConnectionChange = ConnectionSettings.pick({
  clientAuth: true,
  scopes: true,
  authorizationParams: true,
}).extend({
  clientSecret: ClientSecret.nullable()
    .optional()
    .describe('Replaces the client secret from the next request on; null makes the client public'),
});
export type ConnectionChange = z.infer<typeof ConnectionChange>;

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
