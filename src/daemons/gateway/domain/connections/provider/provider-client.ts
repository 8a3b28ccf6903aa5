import type { ClientAuth, Configuration } from 'openid-client';
import type { ClientAuthMethod } from '../../../../../contracts/index.ts';
import type { OutgoingReply } from '../../../../outgoing/outgoing-client.ts';
import type { StoredSettings, Tokens } from '../connection-records.ts';
import { causesOf, needsAuthorization, ProviderError, safeCode } from './provider-error.ts';
import { hostOf, type ProviderFetchDeps, plainResponse, providerFetch } from './provider-fetch.ts';
import { standardAnswer } from './token-answer.ts';

/** Longer than the limit of a request, which ends the request first and tells why. */
const CLIENT_TIMEOUT_SECONDS = 30;

/** Settings of the client at a provider, with its secret. */
export interface ProviderAccess {
  settings: StoredSettings;
  clientSecret: string | null;
}

/** Tokens that the provider has given. */
export interface Granted extends Tokens {
  expiresInSeconds: number | null;
  /** Scopes as text, or null if the provider does not name them. */
  scope: string | null;
  account: string | null;
}

export interface Discovered {
  issuer: string;
  authorizationUrl: string | null;
  tokenUrl: string | null;
  revocationUrl: string | null;
  clientAuth: ClientAuthMethod | null;
}

/** Values that bind the answer of the provider to the authorization that began. */
export interface AuthorizationChecks {
  redirectUri: string;
  state: string;
  verifier: string;
}

type Client = typeof import('openid-client');

/** Speaks OAuth 2 with providers that users choose. Throws ProviderError. @spec docs/decisions/0257 */
export class ProviderClient {
  readonly #deps: ProviderFetchDeps;

  constructor(deps: ProviderFetchDeps) {
    this.#deps = deps;
  }

  /** Reads the endpoints of an issuer, by OpenID Connect or RFC 8414. */
  async discover(issuer: string, clientId: string): Promise<Discovered> {
    const client = await import('openid-client');
    const read = (algorithm: 'oidc' | 'oauth2') =>
      client.discovery(new URL(issuer), clientId, undefined, client.None(), {
        algorithm,
        execute: [client.allowInsecureRequests],
        timeout: CLIENT_TIMEOUT_SECONDS,
        [client.customFetch]: providerFetch(this.#deps),
      });
    const found = await read('oidc')
      .catch(() => read('oauth2'))
      .catch((error: unknown) => {
        throw failureOf(error, issuer);
      });
    const server = found.serverMetadata();
    return {
      issuer: server.issuer,
      authorizationUrl: server.authorization_endpoint ?? null,
      tokenUrl: server.token_endpoint ?? null,
      revocationUrl: server.revocation_endpoint ?? null,
      clientAuth: authMethodOf(server.token_endpoint_auth_methods_supported),
    };
  }

  /** Returns the URL at which a person authorizes the connection. */
  async authorizationUrl(settings: StoredSettings, checks: AuthorizationChecks): Promise<URL> {
    const client = await import('openid-client');
    const { configuration } = this.#configure(client, { settings, clientSecret: null });
    const { scopes, scopeSeparator, authorizationParams, pkce } = settings;
    return client.buildAuthorizationUrl(configuration, {
      ...authorizationParams,
      redirect_uri: checks.redirectUri,
      state: checks.state,
      ...(scopes.length > 0 ? { scope: scopes.join(scopeSeparator) } : {}),
      ...(pkce
        ? {
            code_challenge: await client.calculatePKCECodeChallenge(checks.verifier),
            code_challenge_method: 'S256',
          }
        : {}),
    });
  }

  /** Exchanges the code of `callback` for tokens. `state` and `iss` are checked before the code is sent. */
  async redeem(
    access: ProviderAccess,
    callback: URL,
    checks: Omit<AuthorizationChecks, 'redirectUri'>,
  ): Promise<Granted> {
    const client = await import('openid-client');
    const { settings } = access;
    const { configuration, account } = this.#configure(client, access);
    // The pages of such a provider name no issuer. Its endpoints come from the catalogue, so no issuer can be mixed up.
    if (settings.issuer === null && settings.provider !== null) callback.searchParams.delete('iss');
    const answer = await client
      .authorizationCodeGrant(configuration, callback, {
        expectedState: checks.state,
        ...(settings.pkce ? { pkceCodeVerifier: checks.verifier } : {}),
      })
      .catch((error: unknown) => {
        throw failureOf(error, settings.tokenUrl);
      });
    return grantedBy(answer, null, account());
  }

  /** Gets a new access token, and perhaps a new refresh token that replaces the former one. */
  async refresh(access: ProviderAccess, refreshToken: string): Promise<Granted> {
    const client = await import('openid-client');
    const { configuration, account } = this.#configure(client, access);
    const answer = await client.refreshTokenGrant(configuration, refreshToken).catch((error: unknown) => {
      throw failureOf(error, access.settings.tokenUrl);
    });
    return grantedBy(answer, refreshToken, account());
  }

  /** Revokes the tokens. Returns false if the provider has no revocation endpoint. */
  async revoke(access: ProviderAccess, { accessToken, refreshToken }: Tokens): Promise<boolean> {
    const { revocationUrl } = access.settings;
    if (revocationUrl === null) return false;
    const client = await import('openid-client');
    const { configuration } = this.#configure(client, access);
    // Both are sent, because not every provider revokes the access tokens of a refresh token (RFC 7009, 2.1).
    for (const [token, hint] of [
      [refreshToken, 'refresh_token'],
      [accessToken, 'access_token'],
    ] as const) {
      if (token !== null)
        await client
          .tokenRevocation(configuration, token, { token_type_hint: hint })
          .catch((error: unknown) => {
            throw failureOf(error, revocationUrl);
          });
    }
    return true;
  }

  #configure(
    client: Client,
    { settings, clientSecret }: ProviderAccess,
  ): { configuration: Configuration; account: () => string | null } {
    const { issuer, authorizationUrl, tokenUrl, revocationUrl, clientId, clientAuth } = settings;
    let account: string | null = null;
    const configuration = new client.Configuration(
      {
        // Without an issuer, any `iss` of an answer differs from this value and is refused.
        issuer: issuer ?? tokenUrl,
        authorization_endpoint: authorizationUrl,
        token_endpoint: tokenUrl,
        ...(revocationUrl === null ? {} : { revocation_endpoint: revocationUrl }),
      },
      clientId,
      undefined,
      authentication(client, clientAuth, clientSecret, settings.provider !== null),
    );
    configuration.timeout = CLIENT_TIMEOUT_SECONDS;
    client.allowInsecureRequests(configuration);
    const convert = (url: string, reply: OutgoingReply): Response => {
      if (url !== new URL(tokenUrl).href) return plainResponse(url, reply);
      const { status, headers, excerpt: text } = reply;
      const answer = standardAnswer(
        { status, contentType: [headers['content-type']].flat()[0], text },
        clientId,
      );
      if (!answer) throw unusable(tokenUrl, status);
      if (answer.status >= 500) throw refusedWith(answer.fields.error, tokenUrl);
      account = answer.account;
      return Response.json(answer.fields, { status: answer.status });
    };
    configuration[client.customFetch] = providerFetch(this.#deps, convert);
    return { configuration, account: () => account };
  }
}

/** Adds the credentials of the client to a request. */
function authentication(
  client: Client,
  method: ClientAuthMethod,
  secret: string | null,
  isCatalogued: boolean,
): ClientAuth {
  if (method === 'none' || secret === null) return client.None();
  return method === 'basic' ? basicAuthentication(secret, isCatalogued) : client.ClientSecretPost(secret);
}

/**
 * HTTP Basic authentication. RFC 6749, 2.3.1 encodes both parts as in forms, but providers of the catalogue decode
 * nothing: their own clients send them as they are. Other servers get them encoded without the characters that a form
 * may contain, so that most secrets are the same text in both ways. `openid-client` would encode those, too.
 */
function basicAuthentication(secret: string, isCatalogued: boolean): ClientAuth {
  const encode = isCatalogued ? (text: string) => text : formEncoded;
  return (_server, { client_id }, _body, headers) => {
    const credentials = Buffer.from(`${encode(client_id)}:${encode(secret)}`).toString('base64');
    headers.set('authorization', `Basic ${credentials}`);
  };
}

const formEncoded = (text: string): string =>
  encodeURIComponent(text)
    .replaceAll('%20', '+')
    .replace(/[!'()]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

/** Prefers the header, in which proxies and servers log a secret less often than in a body. */
function authMethodOf(supported: readonly string[] | undefined): ClientAuthMethod | null {
  if (!supported || supported.includes('client_secret_basic')) return 'basic';
  if (supported.includes('client_secret_post')) return 'post';
  return supported.includes('none') ? 'none' : null;
}

interface TokenAnswer {
  access_token: string;
  refresh_token?: string | undefined;
  expires_in?: number | undefined;
  scope?: string | undefined;
}

function grantedBy(answer: TokenAnswer, formerRefreshToken: string | null, account: string | null): Granted {
  return {
    accessToken: answer.access_token,
    // Without a new refresh token, the former one stays valid (RFC 6749, 6).
    refreshToken: answer.refresh_token ?? formerRefreshToken,
    expiresInSeconds: answer.expires_in ?? null,
    scope: answer.scope ?? null,
    account,
  };
}

function refusedWith(error: unknown, url: string): ProviderError {
  const code = safeCode(error);
  return new ProviderError(code, `${hostOf(url)} refused the request: ${code}.`);
}

function unusable(url: string, status: number): ProviderError {
  const isRefusal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return new ProviderError(
    'invalid_answer',
    `${hostOf(url)} answered with status ${status} and with neither a JSON object nor a form.`,
    { isFinal: isRefusal && status !== 404 && status !== 403 },
  );
}

/**
 * Converts an error of the client. Texts of the provider are left out, because they could contain tokens or markup; only
 * a well-formed error code is kept.
 */
function failureOf(error: unknown, url: string): ProviderError {
  const chain = causesOf(error);
  const known = chain.find((one) => one instanceof ProviderError);
  if (known) return known;
  const host = hostOf(url);
  for (const one of chain) {
    const {
      code,
      error: reason,
      status,
    } = (one ?? {}) as { code?: unknown; error?: unknown; status?: unknown };
    if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') {
      const refused = safeCode(reason);
      const why =
        refused === 'access_denied'
          ? 'The person or the provider refused the authorization.'
          : `The provider refused the authorization: ${refused}.`;
      return new ProviderError(refused, why, { isFinal: true });
    }
    if (code === 'OAUTH_RESPONSE_BODY_ERROR') {
      const refused = safeCode(reason);
      const isBusy = typeof status === 'number' && (status >= 500 || status === 429);
      return new ProviderError(refused, `${host} refused the request: ${refused}.`, {
        isFinal: !isBusy && needsAuthorization(refused),
      });
    }
  }
  if (chain.some((one) => one instanceof Error && /"iss"/.test(one.message)))
    return new ProviderError(
      'issuer_mismatch',
      'The answer comes from another issuer than the one of the connection. Set endpoints.issuer if the provider sends "iss".',
      { isFinal: true },
    );
  return new ProviderError('invalid_answer', `The answer of ${host} is not a valid one.`, { cause: error });
}
