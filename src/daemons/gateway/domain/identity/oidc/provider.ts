import type { Configuration, CustomFetch } from 'openid-client';
import { LIMITS, type StudioOidc } from '../../../../../contracts/index.ts';
import { isLoopbackHost } from '../../../../../kit/config/loopback.ts';
import { type Environment, resolveSecret } from '../../../../../kit/config/secret-ref.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { hours, seconds } from '../../../../../kit/time/duration.ts';
import { boundedText } from '../../../../oauth/bounded-fetch.ts';

const TIMEOUT_SECONDS = 5;
/** Age after which the endpoints of the provider are read again. */
const MAX_AGE_MS = hours(1);
const FAILURE_COOLDOWN_MS = seconds(5);

export interface OidcProviderDeps {
  oidc: StudioOidc;
  env: Environment;
  clock: Clock;
}

/** Values that bind the answer of the provider to the browser that began the sign-in. */
export interface SignInChecks {
  state: string;
  nonce: string;
  verifier: string;
}

/** A person whom the provider has authenticated. */
export interface OidcPerson {
  subject: string;
  /** Values of the role claim. */
  values: string[];
}

/** The provider could not be reached, or its configuration document is unusable. */
export class ProviderUnavailable extends Error {}

type Client = typeof import('openid-client');
type Claims = Record<string, unknown>;

/**
 * Speaks to the identity provider. The provider is first contacted at a sign-in, so that the gateway starts without it.
 * @spec docs/decisions/0233
 */
export class OidcProvider {
  readonly #deps: OidcProviderDeps;
  #current: { configuration: Configuration; readAt: number } | undefined;
  #reading: Promise<Configuration> | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: OidcProviderDeps) {
    this.#deps = deps;
  }

  /** Returns the URL at which the person signs in. Throws ProviderUnavailable. */
  async authorizationUrl(redirectUri: string, { state, nonce, verifier }: SignInChecks): Promise<URL> {
    const client = await import('openid-client');
    const configuration = await this.#configuration(client);
    return client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.#deps.oidc.scopes.join(' '),
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
  }

  /**
   * Exchanges the code of `callback` for the person. Throws ProviderUnavailable, or an error of the client if an answer
   * of the provider is not valid.
   */
  async redeem(callback: URL, { state, nonce, verifier }: SignInChecks): Promise<OidcPerson> {
    const client = await import('openid-client');
    const configuration = await this.#configuration(client);
    const tokens = await client.authorizationCodeGrant(configuration, callback, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    const claims = tokens.claims()! as Claims & { sub: string };
    const { roleClaim } = this.#deps.oidc;
    const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined;
    // Many providers keep the ID token small and put groups into the answer of their userinfo endpoint only.
    const source: Claims =
      Object.hasOwn(claims, roleClaim) || !hasUserInfo
        ? claims
        : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub);
    return { subject: claims.sub, values: textsAt(source, roleClaim) };
  }

  /** Reads the endpoints of the provider once for all waiting sign-ins. After a failure, older ones stay in use. */
  async #configuration(client: Client): Promise<Configuration> {
    const now = this.#deps.clock.monotonic();
    const current = this.#current;
    if (current && now - current.readAt < MAX_AGE_MS) return current.configuration;
    const hasCooled = now - this.#failedAt >= FAILURE_COOLDOWN_MS;
    if (!this.#reading && !hasCooled) {
      if (current) return current.configuration;
      throw new ProviderUnavailable('The last attempt failed a moment ago.');
    }
    this.#reading ??= this.#discover(client).finally(() => {
      this.#reading = undefined;
    });
    try {
      return await this.#reading;
    } catch (error) {
      if (current) return current.configuration;
      throw error;
    }
  }

  async #discover(client: Client): Promise<Configuration> {
    const { oidc, env, clock } = this.#deps;
    try {
      const secret = resolveSecret(oidc.clientSecret, env, 'studio.oidc.clientSecret');
      const issuer = new URL(oidc.issuer);
      const metadata = { [client.clockTolerance]: LIMITS.jwtClockToleranceSeconds };
      const configuration = await client.discovery(
        issuer,
        oidc.clientId,
        metadata,
        clientAuth(client, secret),
        {
          // The signature of the ID token is checked although it comes over a connection to the provider.
          execute: [
            client.enableNonRepudiationChecks,
            ...(issuer.protocol === 'http:' ? [client.allowInsecureRequests] : []),
          ],
          timeout: TIMEOUT_SECONDS,
          [client.customFetch]: boundedFetch,
        },
      );
      this.#current = { configuration, readAt: clock.monotonic() };
      return configuration;
    } catch (error) {
      this.#failedAt = clock.monotonic();
      throw new ProviderUnavailable(`The provider at ${oidc.issuer} cannot be used.`, { cause: error });
    }
  }
}

/** Sends the secret in the header, or in the body if the provider accepts it only there. */
function clientAuth(client: Client, secret: string | undefined) {
  if (secret === undefined) return client.None();
  const basic = client.ClientSecretBasic(secret);
  const post = client.ClientSecretPost(secret);
  return (...[server, ...rest]: Parameters<typeof basic>): void => {
    const methods = server.token_endpoint_auth_methods_supported;
    const authenticate = !methods || methods.includes('client_secret_basic') ? basic : post;
    authenticate(server, ...rest);
  };
}

/** Limits the size of answers, and allows http for addresses of this machine only. Redirects are not followed. */
const boundedFetch: CustomFetch = async (url, init) => {
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'https:' && !isLoopbackHost(hostname)) throw new Error(`${url} is not https`);
  const response = await fetch(url, init as RequestInit);
  const { status, headers } = response;
  const text = await boundedText(response);
  return new Response([204, 205, 304].includes(status) ? null : text, { status, headers });
};

function textsAt(claims: Claims, name: string): string[] {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  return [value].flat().filter((one) => typeof one === 'string');
}
