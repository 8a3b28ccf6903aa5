import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';
import { atEnd } from './at-end.ts';
import { SignInClient } from './sign-in-client.ts';

export const OAUTH_CLIENT_ID = 'svc-connections';
export const OAUTH_CLIENT_SECRET = 'a-client-secret-of-the-oauth-provider';
const SCOPES = 'openid offline_access email items:read items:write';
/** Lifetime of access tokens by the clock of the provider, which is the wall clock. */
export const TOKEN_SECONDS = 3600;

/** A request to the token or revocation endpoint. */
export interface TokenRequest {
  path: string;
  authorization: string | undefined;
  form: URLSearchParams;
}

export interface OAuthProvider {
  issuer: string;
  /** Requests to the token and revocation endpoints. */
  requests: TokenRequest[];
  /** Answers of the token endpoint, in plain text. */
  answers: Array<Record<string, string>>;
  /** Allows a redirect URI of the client. All calls before the first authorization count. */
  trust(redirectUri: string): void;
  /** Replaces the answers of the token endpoint, until undefined. Returns false to let the provider answer. */
  tamper(by: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined): void;
  /** Delays answers of the token endpoint until the promise settles. */
  hold(until: Promise<unknown> | undefined): void;
  refreshes(): TokenRequest[];
  stop(): Promise<void>;
  provider(): Provider;
}

/** A real OAuth 2 provider on loopback that rotates refresh tokens, checks PKCE and sends `iss`. */
export async function startOAuthProvider({ isPublic = false } = {}): Promise<OAuthProvider> {
  let listener: RequestListener = (_request, response) => void response.writeHead(503).end();
  const server = createServer((request, response) => listener(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  atEnd(stop);
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: 'test', alg: 'RS256', use: 'sig' };
  const redirectUris: string[] = [];
  const requests: TokenRequest[] = [];
  const answers: OAuthProvider['answers'] = [];
  let tampered: Parameters<OAuthProvider['tamper']>[0];
  let held: Promise<unknown> | undefined;
  let made: Provider | undefined;

  function build(): Provider {
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: OAUTH_CLIENT_ID,
          ...(isPublic
            ? { token_endpoint_auth_method: 'none' as const }
            : {
                client_secret: OAUTH_CLIENT_SECRET,
                token_endpoint_auth_method: 'client_secret_basic' as const,
              }),
          redirect_uris: redirectUris,
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          application_type: 'native',
        },
      ],
      jwks: { keys: [key as never] },
      cookies: { keys: ['a key for the cookies of the provider'] },
      scopes: SCOPES.split(' '),
      claims: { openid: ['sub'], email: ['email'] },
      conformIdTokenClaims: false,
      pkce: { required: () => true },
      rotateRefreshToken: true,
      ttl: {
        AccessToken: TOKEN_SECONDS,
        RefreshToken: 30 * 24 * 3600,
        Grant: 3600,
        Session: 3600,
        Interaction: 3600,
        IdToken: 3600,
      },
      issueRefreshToken: async (_ctx, client, code) =>
        client.grantTypeAllowed('refresh_token') && code.scopes.has('offline_access'),
      features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
      interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
      findAccount: (_ctx, id) => ({
        accountId: id,
        claims: async () => ({ sub: id, email: `${id}@example.com` }),
      }),
      async loadExistingGrant(ctx) {
        const grant = new ctx.oidc.provider.Grant({
          clientId: ctx.oidc.client!.clientId,
          accountId: ctx.oidc.session!.accountId!,
        });
        grant.addOIDCScope(SCOPES);
        await grant.save();
        return grant;
      },
    });
    provider.use(async (ctx, next) => {
      await next();
      if (ctx.path === '/token' && ctx.status === 200) answers.push(ctx.body as Record<string, string>);
    });
    return provider;
  }

  listener = (request, response) => {
    made ??= build();
    const { pathname } = new URL(request.url!, issuer);
    if (pathname.startsWith('/interaction/')) return void interact(made, request, response);
    if (pathname !== '/token' && pathname !== '/token/revocation')
      return void made.callback()(request, response);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      requests.push({
        path: pathname,
        authorization: request.headers.authorization,
        form: new URLSearchParams(body.toString()),
      });
      // oidc-provider takes a body that was read before.
      Object.assign(request, { body: body.toString() });
      void (held ?? Promise.resolve()).then(() => {
        if (!tampered?.(request, response)) made!.callback()(request, response);
      });
    });
  };

  return {
    issuer,
    requests,
    answers,
    trust: (uri) => {
      if (!redirectUris.includes(uri)) redirectUris.push(uri);
      made = undefined;
    },
    tamper: (by) => {
      tampered = by;
    },
    hold: (until) => {
      held = until;
    },
    refreshes: () => requests.filter(({ form }) => form.get('grant_type') === 'refresh_token'),
    stop,
    provider: () => made!,
  };
}

async function interact(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'consent') {
    const { accountId } = session!;
    const grant = new provider.Grant({ clientId: String(params.client_id), accountId });
    grant.addOIDCScope(SCOPES);
    const grantId = await grant.save();
    return provider.interactionFinished(request, response, { consent: { grantId } });
  }
  if (request.method === 'GET')
    return void response.setHeader('content-type', 'text/html').end('<form method="post"></form>');
  let body = '';
  for await (const chunk of request) body += chunk;
  const accountId = new URLSearchParams(body).get('login');
  const result = accountId
    ? { login: { accountId } }
    : { error: 'access_denied', error_description: '<b>cancelled</b>' };
  await provider.interactionFinished(request, response, result);
}

/** Opens the link in a browser, and signs in at the provider. Returns the address of the callback. */
export async function authorizeInBrowser(
  browser: SignInClient,
  authorizeUrl: string,
  login = 'ada',
): Promise<string> {
  const form = await browser.follow(`${authorizeUrl}/continue`, (url) => url.includes('/interaction/'));
  const sent = await browser.get(form, { method: 'POST', body: new URLSearchParams({ login }) });
  return browser.follow(SignInClient.target(sent), (url) => url.includes('/oauth/callback'));
}
