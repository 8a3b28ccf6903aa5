import { z } from 'zod';
import { CONNECTION_PROVIDER_IDS } from './connection-provider-ids.ts';
import { SecretName } from './secrets.ts';
import { isTamperProof } from './studio-config.ts';

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
