import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import Provider from 'oidc-provider';
import { atEnd } from './at-end.ts';

export const CLIENT_ID = 'svc-studio';
export const CLIENT_SECRET = 'a-client-secret-of-the-test-provider';

/** Groups of the accounts, by login name. */
const ACCOUNTS: Record<string, string[]> = {
  ada: ['svc-admins', 'staff'],
  eve: ['svc-viewers', 'staff'],
  mallory: ['staff'],
  many: ['svc-admins', ...['1', '2', '3'].map((n) => n + '€'.repeat(240))],
  some: ['7', 'b-viewers', 'a-viewers'],
};

export interface TestProvider {
  issuer: string;
  /** Makes the provider lead back to a gateway. */
  trust(redirectUri: string): void;
  /** Replaces the ID token of the next sign-ins. */
  forge(change: ((claims: JWTPayload, sign: Sign) => Promise<string> | string) | undefined): void;
  /** Stops to answer, as a provider that is down. */
  stop(): Promise<void>;
}

/** Signs claims with the key that the provider publishes. */
export type Sign = (claims: JWTPayload) => Promise<string>;

export interface TestProviderOptions {
  /** Whether the groups are in the ID token. By default they are only in the answer of the userinfo endpoint. */
  hasGroupsInToken?: boolean;
}

/** A real OpenID provider on loopback, whose sign-in form takes the name of an account. */
export async function startOidcProvider({
  hasGroupsInToken = false,
}: TestProviderOptions = {}): Promise<TestProvider> {
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
  const sign: Sign = (claims) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'test' }).sign(privateKey);
  let forge: Parameters<TestProvider['forge']>[0];

  function trust(redirectUri: string): void {
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: CLIENT_ID,
          client_secret: CLIENT_SECRET,
          redirect_uris: [redirectUri],
          grant_types: ['authorization_code'],
          response_types: ['code'],
        },
      ],
      jwks: { keys: [key as never] },
      cookies: { keys: ['a key for the cookies of the provider'] },
      claims: { openid: ['sub'], profile: ['groups'] },
      conformIdTokenClaims: !hasGroupsInToken,
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
      findAccount: (_ctx, id) => ({
        accountId: id,
        claims: async () => ({ sub: id, groups: ACCOUNTS[id] ?? [] }),
      }),
      // The person is not asked what the studio may see.
      async loadExistingGrant(ctx) {
        const grant = new ctx.oidc.provider.Grant({
          clientId: ctx.oidc.client!.clientId,
          accountId: ctx.oidc.session!.accountId!,
        });
        grant.addOIDCScope('openid profile email');
        await grant.save();
        return grant;
      },
    });
    provider.use(async (ctx, next) => {
      await next();
      const body = ctx.body as { id_token?: string };
      if (ctx.path === '/token' && forge && body.id_token)
        body.id_token = await forge(decodeJwt(body.id_token), sign);
    });
    const callback = provider.callback();
    listener = (request, response) => {
      if (!request.url?.startsWith('/interaction/')) return void callback(request, response);
      if (request.method === 'GET') return void response.setHeader('content-type', 'text/html').end(FORM);
      void (async () => {
        let body = '';
        for await (const chunk of request) body += chunk;
        const accountId = new URLSearchParams(body).get('login');
        const result = accountId
          ? { login: { accountId } }
          : { error: 'access_denied', error_description: 'The person has cancelled.' };
        await provider.interactionFinished(request, response, result);
      })();
    };
  }
  return {
    issuer,
    trust,
    forge(change) {
      forge = change;
    },
    stop,
  };
}

const FORM = `<!doctype html><html lang="en"><title>Provider</title>
<form method="post"><label>Name <input name="login"></label><button>Continue</button></form></html>`;
