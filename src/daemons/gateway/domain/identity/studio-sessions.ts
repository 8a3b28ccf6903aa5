import { createHash } from 'node:crypto';
import type { Caller } from '../../../../contracts/index.ts';
import { rateLimited } from '../../../../http/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { SharedLimiter } from '../../../../kit/limits/rate-limiter.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { hours, seconds } from '../../../../kit/time/duration.ts';
import type { KeyValueStore } from '../../../../store/ports/index.ts';
import type { Admins } from './admins.ts';
import type { Authenticator, Principal, Subject } from './authenticator.ts';
import { authorizationOf, bearerToken } from './bearer.ts';
import type { ClientRegistry, Credentials } from './client-registry.ts';
import { type MintedTokens, SESSION_ID_PREFIX, type SessionOwner } from './minted-tokens.ts';
import type { SessionCookie } from './session-cookie.ts';
import { loginOf, PLATFORM_SCOPE } from './static-tokens.ts';

const LINK_MS = seconds(60);
const SESSION_MS = hours(12);
const LINK_PREFIX = 'svcl_';
const MAX_SIGN_INS_PER_MINUTE = 30;
/** Browsers drop cookies above 4096 bytes. */
const MAX_COOKIE_TOKEN_BYTES = 3800;

/** Proof with which a person signs in. */
export type SignIn = { link: string } | { token: string } | Credentials;

export interface StudioSessionsDeps {
  authenticator: Pick<Authenticator, 'authenticate'>;
  cookie: SessionCookie;
  clients: Pick<ClientRegistry, 'verify'>;
  mintedTokens: Pick<MintedTokens, 'mintSession'>;
  admins: Admins;
  cache: KeyValueStore;
  limiter: SharedLimiter;
  publicUrl: string | null;
  clock: Clock;
  random: Random;
}

/** Starts and describes the sessions of the studio. A session is a minted token in a cookie. @spec docs/studio.md */
export class StudioSessions {
  readonly #deps: StudioSessionsDeps;

  constructor(deps: StudioSessionsDeps) {
    this.#deps = deps;
  }

  /** Creates a one-time link for the identity of the caller, who must be an administrator. */
  async createLink(subject: Subject): Promise<{ path: string; publicUrl: string | null; expiresAt: number }> {
    const { admins, cache, clock, random, authenticator, publicUrl } = this.#deps;
    const caller = await authenticator.authenticate(subject);
    admins.require(caller);
    if (caller.kind === 'oauth' || caller.kind === 'oidc')
      throw new PlatformError(
        'FORBIDDEN',
        'A link cannot carry the claims of your identity provider. Sign in with the provider or its token.',
      );
    const link = LINK_PREFIX + random.secret(32);
    const expiresAt = clock.now() + LINK_MS;
    await cache.set(PLATFORM_SCOPE, linkKey(link), { ...ownerOf(caller, subject) }, LINK_MS);
    // Browsers do not send the fragment, so the link appears in no log and in no Referer header.
    return { path: `/studio/sign-in#link=${link}`, publicUrl, expiresAt };
  }

  /** Starts the session of a person whom the identity provider has authenticated. */
  async startForPerson(owner: SessionOwner, subject: Subject): Promise<{ setCookie: string }> {
    const { cookie, mintedTokens } = this.#deps;
    await this.#limit(owner);
    const ttlSeconds = SESSION_MS / 1000;
    const { token } = await mintedTokens.mintSession(owner, ttlSeconds);
    // The gateway that serves the next call must accept the session, or the person would sign in without end.
    await this.#authenticate(token, subject);
    return { setCookie: cookie.start(token, ttlSeconds) };
  }

  /** Starts a session. Throws UNAUTHORIZED if the proof is not valid. */
  async start(proof: SignIn, subject: Subject) {
    const { cookie, mintedTokens, clock } = this.#deps;
    const caller = await this.#identify(proof, subject);
    await this.#limit(caller);
    const left = caller.expiresAt - clock.now();
    const ttlSeconds = Math.max(1, Math.floor(Math.min(SESSION_MS, left) / 1000));
    const { token, expiresAt } =
      caller.kind === 'oauth' && 'token' in proof
        ? { token: requireCookieSize(proof.token), expiresAt: caller.expiresAt }
        : await mintedTokens.mintSession(caller, ttlSeconds);
    return { session: this.#describe(caller, token, expiresAt), setCookie: cookie.start(token, ttlSeconds) };
  }

  /** Describes the session of the cookie. Throws UNAUTHORIZED without a valid session. */
  async current(subject: Subject) {
    const token = this.#deps.cookie.token(subject.rawHeaders);
    if (token === undefined) throw signedOut('There is no session. Sign in.');
    const caller = await this.#authenticate(token, subject);
    return { caller, session: this.#describe(caller, token, caller.expiresAt) };
  }

  /** Limits the rows of sessions that one caller can create. */
  async #limit({ hostId }: Caller): Promise<void> {
    const { allowed, resetMs } = await this.#deps.limiter.take(hostId, MAX_SIGN_INS_PER_MINUTE);
    if (!allowed) throw rateLimited(MAX_SIGN_INS_PER_MINUTE, resetMs);
  }

  async #identify(
    proof: SignIn,
    subject: Subject,
  ): Promise<Caller & Partial<Principal> & { expiresAt: number }> {
    if ('link' in proof) return this.#redeem(proof.link);
    if ('token' in proof) return this.#fromToken(proof.token, subject);
    const client = await this.#deps.clients.verify(proof);
    if (!client) throw signedOut('The client id or the client secret is wrong.');
    return { hostId: client.hostId, namespaceId: client.namespaceId, expiresAt: Number.POSITIVE_INFINITY };
  }

  async #redeem(link: string): Promise<SessionOwner & { expiresAt: number }> {
    const { cache } = this.#deps;
    const key = linkKey(link);
    const entry = await cache.get(PLATFORM_SCOPE, key);
    if (!entry || !(await cache.delete(PLATFORM_SCOPE, key)))
      throw signedOut('This link has expired or was used before. Create a new one with `svc studio`.');
    return requireTimeLeft(entry.value as unknown as LinkOwner, this.#deps.clock.now());
  }

  async #fromToken(token: string, subject: Subject): Promise<Principal> {
    const caller = await this.#authenticate(token, subject);
    if (caller.kind === 'container')
      throw new PlatformError('FORBIDDEN', 'A token of a container cannot open the studio.');
    if (caller.jti?.startsWith(SESSION_ID_PREFIX))
      throw new PlatformError('FORBIDDEN', 'The token of a session cannot start another session.');
    return caller.kind === 'static' ? { ...caller, sid: loginOf(token) } : caller;
  }

  async #authenticate(token: string, subject: Subject): Promise<Principal> {
    const { requestId, traceId, ip } = subject;
    const rawHeaders = ['authorization', `Bearer ${token}`];
    return this.#deps.authenticator.authenticate({ rawHeaders, requestId, traceId, ip });
  }

  #describe(caller: Caller, token: string, expiresAt: number) {
    const { hostId, namespaceId } = caller;
    const { admins, cookie } = this.#deps;
    return { hostId, namespaceId, admin: admins.is(caller), csrfToken: cookie.csrfToken(token), expiresAt };
  }
}

/**
 * Returns the token of an identity provider, which is itself the token of the session: its claims decide the roles of
 * the person. Throws VALIDATION_ERROR if it does not fit into a cookie.
 */
function requireCookieSize(token: string): string {
  const bytes = Buffer.byteLength(token);
  if (bytes <= MAX_COOKIE_TOKEN_BYTES) return token;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The token has ${bytes} bytes, but a session holds at most ${MAX_COOKIE_TOKEN_BYTES}. Configure the identity provider to send fewer claims.`,
  );
}

/** Identity of a link. JSON has no `Infinity`, so null stands for no expiry. */
interface LinkOwner {
  hostId: string;
  namespaceId: string;
  sid: string | null;
  expiresAt: number | null;
}

/**
 * Returns the identity for the session of a link. Revoking the login or token of the caller also revokes the session.
 * The tokens of a login expire after minutes and are renewed, so they do not limit the session.
 */
function ownerOf({ hostId, namespaceId, kind, jti, sid, expiresAt }: Principal, subject: Subject): LinkOwner {
  if (kind !== 'static') {
    const isRenewed = sid !== undefined;
    return { hostId, namespaceId, sid: sid ?? jti, expiresAt: isRenewed ? null : expiresAt };
  }
  const header = authorizationOf(subject.rawHeaders);
  const token = typeof header === 'string' ? bearerToken(header) : undefined;
  return { hostId, namespaceId, sid: token === undefined ? (sid ?? null) : loginOf(token), expiresAt: null };
}

function requireTimeLeft({ sid, expiresAt, ...caller }: LinkOwner, now: number) {
  if (expiresAt !== null && expiresAt <= now)
    throw signedOut('The token that created this link has expired.');
  return { ...caller, sid: sid ?? undefined, expiresAt: expiresAt ?? Number.POSITIVE_INFINITY };
}

/** The store holds only digests, so that read access to the database does not allow a sign-in. */
function linkKey(link: string): string {
  return `studio-link:${createHash('sha256').update(link).digest('base64url')}`;
}

function signedOut(message: string): PlatformError {
  return new PlatformError('UNAUTHORIZED', message);
}
