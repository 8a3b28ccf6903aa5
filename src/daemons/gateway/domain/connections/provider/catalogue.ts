import type { ClientAuthMethod, ConnectionProviderId } from '../../../../../contracts/index.ts';

/** A provider of OAuth 2. In URLs, `{name}` stands for a variable. */
export interface CatalogueProvider {
  name: string;
  /** Expected in `iss` of the answer. Undefined if the provider's pages name none. */
  issuer?: string;
  authorizationUrl: string;
  tokenUrl: string;
  /** A revocation endpoint by RFC 7009. */
  revocationUrl?: string;
  registerUrl: string;
  scopes: readonly string[];
  scopeSeparator?: string;
  clientAuth: ClientAuthMethod;
  /** Whether the provider accepts PKCE. Parameters that a provider does not know could make it refuse the request. */
  pkce: boolean;
  authorizationParams?: Readonly<Record<string, string>>;
  variables?: Readonly<Record<string, string>>;
  /** Lifetime of access tokens for providers that do not tell it, in seconds. */
  tokenLifetimeSeconds?: number;
  /** When the provider gives a refresh token. */
  refreshes: string;
  notes?: readonly string[];
}

/** Providers of the catalogue. None was tried with an account of the provider. @spec docs/connections.md "Providers" */
export const CATALOGUE: Readonly<Record<ConnectionProviderId, CatalogueProvider>> = {
  atlassian: {
    name: 'Atlassian',
    authorizationUrl: 'https://auth.atlassian.com/authorize',
    tokenUrl: 'https://auth.atlassian.com/oauth/token',
    registerUrl: 'https://developer.atlassian.com/console/myapps/',
    scopes: ['offline_access'],
    clientAuth: 'post',
    pkce: false,
    authorizationParams: { audience: 'api.atlassian.com', prompt: 'consent' },
    refreshes: 'With the scope offline_access; rotates',
  },
  discord: {
    name: 'Discord',
    authorizationUrl: 'https://discord.com/oauth2/authorize',
    tokenUrl: 'https://discord.com/api/oauth2/token',
    revocationUrl: 'https://discord.com/api/oauth2/token/revoke',
    registerUrl: 'https://discord.com/developers/applications',
    scopes: ['identify'],
    clientAuth: 'basic',
    pkce: true,
    refreshes: 'Always; rotates',
  },
  github: {
    name: 'GitHub',
    authorizationUrl: 'https://github.com/login/oauth/authorize',
    tokenUrl: 'https://github.com/login/oauth/access_token',
    registerUrl: 'https://github.com/settings/developers',
    scopes: [],
    clientAuth: 'post',
    pkce: true,
    refreshes: 'GitHub Apps with expiring user tokens only; rotates',
    notes: [
      'OAuth Apps give tokens that do not expire.',
      'Tokens are not revoked with the connection: revoke them in the settings of the account.',
    ],
  },
  gitlab: {
    name: 'GitLab',
    issuer: 'https://{host}',
    authorizationUrl: 'https://{host}/oauth/authorize',
    tokenUrl: 'https://{host}/oauth/token',
    revocationUrl: 'https://{host}/oauth/revoke',
    registerUrl: 'https://gitlab.com/-/user_settings/applications',
    scopes: ['read_user'],
    clientAuth: 'basic',
    pkce: true,
    variables: { host: 'gitlab.com' },
    refreshes: 'Always; rotates',
  },
  google: {
    name: 'Google',
    issuer: 'https://accounts.google.com',
    authorizationUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
    tokenUrl: 'https://oauth2.googleapis.com/token',
    revocationUrl: 'https://oauth2.googleapis.com/revoke',
    registerUrl: 'https://console.cloud.google.com/apis/credentials',
    scopes: ['openid', 'email'],
    clientAuth: 'post',
    pkce: true,
    authorizationParams: { access_type: 'offline', prompt: 'consent' },
    refreshes: 'Always, because the connection asks for offline access',
    notes: ['Refresh tokens of apps in testing status expire after seven days.'],
  },
  hubspot: {
    name: 'HubSpot',
    authorizationUrl: 'https://app.hubspot.com/oauth/authorize',
    tokenUrl: 'https://api.hubapi.com/oauth/v1/token',
    registerUrl: 'https://app.hubspot.com/developer',
    scopes: ['oauth'],
    clientAuth: 'post',
    pkce: false,
    refreshes: 'Always',
  },
  linear: {
    name: 'Linear',
    authorizationUrl: 'https://linear.app/oauth/authorize',
    tokenUrl: 'https://api.linear.app/oauth/token',
    revocationUrl: 'https://api.linear.app/oauth/revoke',
    registerUrl: 'https://linear.app/settings/api/applications/new',
    scopes: ['read'],
    scopeSeparator: ',',
    clientAuth: 'post',
    pkce: true,
    refreshes: 'For applications with refresh tokens; rotates',
  },
  microsoft: {
    name: 'Microsoft',
    authorizationUrl: 'https://login.microsoftonline.com/{tenant}/oauth2/v2.0/authorize',
    tokenUrl: 'https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token',
    registerUrl: 'https://entra.microsoft.com/',
    scopes: ['openid', 'offline_access'],
    clientAuth: 'post',
    pkce: true,
    variables: { tenant: 'common' },
    refreshes: 'With the scope offline_access; rotates',
    notes: ['Microsoft has no revocation endpoint: an administrator revokes sign-ins in Entra.'],
  },
  notion: {
    name: 'Notion',
    authorizationUrl: 'https://api.notion.com/v1/oauth/authorize',
    tokenUrl: 'https://api.notion.com/v1/oauth/token',
    registerUrl: 'https://www.notion.so/profile/integrations',
    scopes: [],
    clientAuth: 'basic',
    pkce: false,
    authorizationParams: { owner: 'user' },
    refreshes: 'Newer integrations',
    notes: ['Capabilities belong to the integration, so Notion has no scopes.'],
  },
  salesforce: {
    name: 'Salesforce',
    issuer: 'https://{host}',
    authorizationUrl: 'https://{host}/services/oauth2/authorize',
    tokenUrl: 'https://{host}/services/oauth2/token',
    revocationUrl: 'https://{host}/services/oauth2/revoke',
    registerUrl: 'https://login.salesforce.com/',
    scopes: ['api', 'refresh_token'],
    clientAuth: 'post',
    pkce: true,
    variables: { host: 'login.salesforce.com' },
    tokenLifetimeSeconds: 3600,
    refreshes: 'With the scope refresh_token',
    notes: ['Salesforce does not tell the lifetime of access tokens. One hour is assumed.'],
  },
  slack: {
    name: 'Slack',
    authorizationUrl: 'https://slack.com/oauth/v2/authorize',
    tokenUrl: 'https://slack.com/api/oauth.v2.access',
    registerUrl: 'https://api.slack.com/apps',
    scopes: ['chat:write'],
    scopeSeparator: ',',
    clientAuth: 'post',
    pkce: false,
    refreshes: 'Apps with token rotation only; rotates',
    notes: [
      'The token is that of the bot. If only user scopes are asked for (authorizationParams.user_scope), it is that of the user.',
      'Tokens are not revoked with the connection: uninstall the app, or call auth.revoke.',
    ],
  },
  zoom: {
    name: 'Zoom',
    authorizationUrl: 'https://zoom.us/oauth/authorize',
    tokenUrl: 'https://zoom.us/oauth/token',
    revocationUrl: 'https://zoom.us/oauth/revoke',
    registerUrl: 'https://marketplace.zoom.us/',
    scopes: [],
    clientAuth: 'basic',
    pkce: true,
    refreshes: 'Always; rotates',
  },
};
