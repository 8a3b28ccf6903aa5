import {
  type Connection,
  connectionToken,
  createConnection,
  getConnection,
} from '../../../../src/contracts/index.ts';
import { createClient, serviceHeaders } from '../../../../src/http/index.ts';
import { TEST_KEYS, type TestDaemonOptions } from '../../../support/daemon.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import {
  authorizeInBrowser,
  OAUTH_CLIENT_ID,
  OAUTH_CLIENT_SECRET,
  type OAuthProvider,
  startOAuthProvider,
} from '../../../support/oauth-provider.ts';
import { SignInClient } from '../../../support/sign-in-client.ts';

export const NAME = 'crm';

/** Config that lets connections reach providers on loopback. */
export const LOOPBACK = { outgoing: { allow: ['127.0.0.1'] } };

export const SCOPES = ['openid', 'email', 'offline_access', 'items:read'];

export interface Place {
  gateway: TestGateway;
  provider: OAuthProvider;
}

/** A gateway and a provider that knows its callback. */
export async function startPlace(options: TestDaemonOptions = {}): Promise<Place> {
  const [gateway, provider] = await Promise.all([
    startGateway({ ...options, config: { ...LOOPBACK, ...options.config } }),
    startOAuthProvider(),
  ]);
  provider.trust(callbackOf(gateway));
  return { gateway, provider };
}

export const callbackOf = ({ url }: { url: string }): string =>
  `http://localhost:${new URL(url).port}/oauth/callback`;

export function create(
  { gateway, provider }: Place,
  body: Partial<Parameters<typeof bodyOf>[1]> & Record<string, unknown> = {},
  token?: string,
) {
  return gateway.call(createConnection, { body: bodyOf(provider, body) as never }, token);
}

export const bodyOf = (provider: OAuthProvider, body: Record<string, unknown> = {}) => ({
  name: NAME,
  endpoints: { issuer: provider.issuer },
  clientId: OAUTH_CLIENT_ID,
  clientSecret: OAUTH_CLIENT_SECRET,
  scopes: SCOPES,
  authorizationParams: { prompt: 'consent' },
  ...body,
});

/** Creates the connection and authorizes it in a browser. */
export async function connect(
  place: Place,
  body: Record<string, unknown> = {},
  token?: string,
): Promise<Connection> {
  const { authorizeUrl, name } = await create(place, body, token);
  await finish(authorizeUrl);
  return place.gateway.call(getConnection, { params: { name } }, token);
}

/** Goes through the pages in a new browser, and returns the answer of the callback. */
export async function finish(authorizeUrl: string, browser = new SignInClient()): Promise<Response> {
  return browser.get(await authorizeInBrowser(browser, authorizeUrl));
}

export const show = ({ gateway }: Pick<Place, 'gateway'>, name = NAME): Promise<Connection> =>
  gateway.call(getConnection, { params: { name } });

/** Asks for a token as the service that runs a plugin does. */
export function tokenOf(
  { url }: Pick<TestGateway, 'url'>,
  name = NAME,
  namespaceId = 'default',
): Promise<{ accessToken: string; expiresAt: number | null }> {
  const client = createClient({ url, peer: 'gateway' });
  return client.call(
    connectionToken,
    { body: { name } },
    { headers: serviceHeaders(TEST_KEYS.internalSecret, { namespaceId }) },
  );
}
