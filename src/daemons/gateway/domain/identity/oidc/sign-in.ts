import {
  HostId,
  OIDC_HOST_PREFIX,
  type SignInProblem,
  STUDIO_OIDC_CALLBACK,
  STUDIO_OIDC_START,
} from '../../../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Subject } from '../authenticator.ts';
import type { StudioSessions } from '../studio-sessions.ts';
import type { PersonRoles } from './person-roles.ts';
import { type OidcPerson, type OidcProvider, ProviderUnavailable } from './provider.ts';
import { returnPath } from './return-path.ts';
import type { SignInCookie } from './sign-in-cookie.ts';

export interface OidcSignInDeps {
  provider: OidcProvider;
  cookie: SignInCookie;
  roles: PersonRoles;
  sessions: Pick<StudioSessions, 'startForPerson'>;
  issuer: string;
  roleClaim: string;
  /** Returns the origin at which browsers reach the gateway. Known once the gateway listens. */
  origin(): string;
  random: Random;
  logger: Logger;
}

/** Keeps the session cookie below 4096 bytes, above which browsers drop it. The token encodes 3 bytes as 4. */
const MAX_ROLE_VALUES_BYTES = 1800;

const REASON_CODES: Record<SignInProblem, string> = {
  not_begun: 'SIGN_IN_NOT_BEGUN',
  refused: 'SIGN_IN_REFUSED',
  invalid: 'SIGN_IN_INVALID',
  no_role: 'SIGN_IN_NO_ROLE',
  too_large: 'SIGN_IN_TOO_LARGE',
  unavailable: 'SIGN_IN_UNAVAILABLE',
  too_many: 'SIGN_IN_TOO_MANY',
  failed: 'SIGN_IN_FAILED',
};

/** Where to send the browser, and the cookies that it gets. */
export interface Redirect {
  location: string;
  cookies: string[];
}

/** Reason to refuse a sign-in. The page of the studio explains it; the log has the details. */
export class SignInRefused extends Error {
  readonly problem: SignInProblem;

  constructor(problem: SignInProblem, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.problem = problem;
  }
}

/**
 * Signs people in with the identity provider: authorization code with PKCE, state and nonce. @spec
 * docs/studio.md "Sign in with your identity provider"
 */
export class OidcSignIn {
  readonly #deps: OidcSignInDeps;

  constructor(deps: OidcSignInDeps) {
    this.#deps = deps;
  }

  /** The button of the sign-in form. Its address has the origin to which the provider leads back. */
  get button(): { name: string; url: string } {
    return { name: new URL(this.#deps.issuer).host, url: this.#deps.origin() + STUDIO_OIDC_START };
  }

  /** Sends the browser to the provider. Throws SignInRefused. */
  async begin(returnTo: unknown): Promise<Redirect> {
    const { provider, cookie, random } = this.#deps;
    const checks = { state: random.secret(32), nonce: random.secret(32), verifier: random.secret(32) };
    const url = await provider.authorizationUrl(this.#callbackUrl().href, checks).catch(refuse);
    return { location: url.href, cookies: [cookie.start({ ...checks, returnTo: returnPath(returnTo) })] };
  }

  /** Starts the session of a browser that comes back from the provider. `query` begins with `?`. */
  async finish(query: string, subject: Subject): Promise<Redirect> {
    const { provider, cookie, sessions } = this.#deps;
    const pending = cookie.read(subject.rawHeaders);
    if (!pending)
      throw new SignInRefused('not_begun', 'The browser has no sign-in cookie, or the cookie has expired.');
    const callback = this.#callbackUrl();
    callback.search = query;
    const person = await provider.redeem(callback, pending).catch(refuse);
    const { setCookie } = await sessions.startForPerson(this.#ownerOf(person), subject);
    return { location: pending.returnTo, cookies: [setCookie, cookie.end()] };
  }

  /** Logs a failed sign-in, and returns the page that explains it. */
  explain(error: unknown, { requestId, traceId, ip }: Subject): Redirect {
    const problem = problemOf(error);
    const reason = [error, causeOf(error), causeOf(causeOf(error))].filter(Boolean).map(messageOf).join(' ');
    this.#deps.logger.diagnostic(
      {
        domain: 'auth',
        event: 'auth.sign_in_failed',
        level: 'warn',
        reasonCode: REASON_CODES[problem],
        message: `A sign-in from ${ip} with ${this.#deps.issuer} failed: ${reason}`,
        outcome: 'refused',
        evidence: { ip },
      },
      { requestId, traceId },
    );
    const query = new URLSearchParams({ problem, request: requestId });
    return { location: `/studio/sign-in?${query}`, cookies: [this.#deps.cookie.end()] };
  }

  #callbackUrl(): URL {
    return new URL(STUDIO_OIDC_CALLBACK, this.#deps.origin());
  }

  #ownerOf({ subject, values }: OidcPerson) {
    const { roles, roleClaim } = this.#deps;
    const hostId = HostId.safeParse(OIDC_HOST_PREFIX + subject);
    if (!hostId.success)
      throw new SignInRefused('invalid', 'The subject of the person is not visible ASCII.');
    const roleValues = roles.valuesThatMatter(values);
    const bytes = Buffer.byteLength(JSON.stringify(roleValues));
    if (bytes > MAX_ROLE_VALUES_BYTES)
      throw new SignInRefused(
        'too_large',
        `The values of the claim "${roleClaim}" that give "${hostId.data}" a role take ${bytes} bytes as JSON, but a session holds at most ${MAX_ROLE_VALUES_BYTES}. Give roles to fewer or shorter values.`,
      );
    const namespaceId = roles.homeOf({ hostId: hostId.data, claims: { [roleClaim]: roleValues } });
    if (namespaceId === null)
      throw new SignInRefused(
        'no_role',
        `"${hostId.data}" has no role. The claim "${roleClaim}" has ${values.length} values, and studio.oidc.roles names none of them.`,
      );
    return { hostId: hostId.data, namespaceId, sid: roles.login, roleValues };
  }
}

/** Errors of the client with which the provider or the person has refused the sign-in. */
const REFUSED_BY_PROVIDER = 'OAUTH_AUTHORIZATION_RESPONSE_ERROR';

function refuse(error: unknown): never {
  if (error instanceof ProviderUnavailable)
    throw new SignInRefused('unavailable', error.message, error.cause);
  const { code, name } = error as { code?: unknown; name?: unknown };
  if (code === REFUSED_BY_PROVIDER) throw new SignInRefused('refused', 'The provider refused it.', error);
  const isUnreachable = name === 'TimeoutError' || (name === 'TypeError' && code === undefined);
  if (isUnreachable) throw new SignInRefused('unavailable', 'The provider does not answer.', error);
  throw new SignInRefused('invalid', 'The answer of the provider is not valid.', error);
}

/** Returns whether a failed sign-in can be an attempt to guess. Others are harmless, or no fault of the browser. */
export function isGuess(error: unknown): boolean {
  const problem = problemOf(error);
  return problem !== 'not_begun' && problem !== 'unavailable';
}

function problemOf(error: unknown): SignInProblem {
  if (error instanceof SignInRefused) return error.problem;
  if (error instanceof PlatformError && error.code === 'RATE_LIMIT_EXCEEDED') return 'too_many';
  return 'failed';
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}
