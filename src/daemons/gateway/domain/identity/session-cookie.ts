import { createHmac } from 'node:crypto';
import { HEADERS } from '../../../../contracts/index.ts';
import { REPEATED, singleHeader } from '../../../../kit/data/raw-headers.ts';
import { deriveKey, safeEqual } from '../../../../kit/security/keys.ts';

const SESSION_COOKIE_PREFIX = 'svc-session-';
/** Browsers accept this prefix only over HTTPS and from this very host, so no subdomain can plant the cookie. */
const SECURE_PREFIX = '__Host-';

/**
 * Name of the cookie that holds the token of a studio session. Browsers send a cookie to every port of a host, so the
 * name contains the port.
 */
export function sessionCookieName(port: number | `${'oidc' | 'oauth'}-${number}`): string {
  return `${SESSION_COOKIE_PREFIX}${port}`;
}

/** Returns a `Cookie` header without session cookies, which services must not receive. Empty if nothing is left. */
export function withoutSessionCookies(header: string): string {
  if (!header.includes(SESSION_COOKIE_PREFIX)) return header;
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => !isSessionCookie(pair))
    .join('; ');
}

/** Returns whether a `Set-Cookie` value sets a session cookie, which only the gateway may do. */
export function setsSessionCookie(value: string): boolean {
  return isSessionCookie(value);
}

function isSessionCookie(pair: string): boolean {
  // Browsers ignore spaces and an empty name before the first `=`.
  const name = pair.replace(/^[\s=]+/, '');
  return name.startsWith(SESSION_COOKIE_PREFIX) || name.startsWith(SECURE_PREFIX + SESSION_COOKIE_PREFIX);
}

/** Token of a session cookie, or the reason why the cookie does not count. */
export type CookieToken = { token: string } | { fault: 'CSRF_TOKEN_INVALID' } | undefined;

/**
 * Reads and writes the cookie of a studio session. A call with the cookie also needs a CSRF token, which other origins
 * cannot read. @spec docs/studio.md
 */
export class SessionCookie {
  readonly #name: string;
  readonly #isSecure: boolean;
  readonly #key: string;

  constructor(options: { name: string; isSecure: boolean; secret: string }) {
    this.#name = options.isSecure ? SECURE_PREFIX + options.name : options.name;
    this.#isSecure = options.isSecure;
    this.#key = deriveKey(options.secret, 'studio-csrf');
  }

  /** Returns the token of a call that has a session cookie and the CSRF token of the session. */
  read(rawHeaders: readonly string[]): CookieToken {
    const token = this.token(rawHeaders);
    if (token === undefined) return undefined;
    const shown = singleHeader(rawHeaders, HEADERS.csrf);
    const isProven = typeof shown === 'string' && safeEqual(shown, this.csrfToken(token));
    return isProven ? { token } : { fault: 'CSRF_TOKEN_INVALID' };
  }

  /** Returns the token of the cookie without a check of the CSRF token. */
  token(rawHeaders: readonly string[]): string | undefined {
    const header = singleHeader(rawHeaders, 'cookie');
    if (header === undefined || header === REPEATED) return undefined;
    const prefix = `${this.#name}=`;
    const found = header.split('; ').filter((pair) => pair.startsWith(prefix));
    // A second cookie with the name comes from another path or domain, and could be an attacker's.
    return found.length === 1 ? found[0]!.slice(prefix.length) : undefined;
  }

  csrfToken(token: string): string {
    return createHmac('sha256', this.#key).update(token).digest('base64url');
  }

  /** Returns the `Set-Cookie` value that starts a session. */
  start(token: string, maxAgeSeconds: number): string {
    return `${this.#name}=${token}; Max-Age=${maxAgeSeconds}; ${this.#attributes()}`;
  }

  /** Returns the `Set-Cookie` value that ends the session in the browser. */
  end(): string {
    return `${this.#name}=; Max-Age=0; ${this.#attributes()}`;
  }

  #attributes(): string {
    return `Path=/; HttpOnly; SameSite=Strict${this.#isSecure ? '; Secure' : ''}`;
  }
}
