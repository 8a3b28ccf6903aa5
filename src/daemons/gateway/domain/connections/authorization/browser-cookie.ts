import { REPEATED, singleHeader } from '../../../../../kit/data/raw-headers.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import { sessionCookieName } from '../../identity/session-cookie.ts';

/** Browsers accept this prefix only over HTTPS and from this very host. */
const SECURE_PREFIX = '__Host-';
const SECRET_BYTES = 32;
const SECRET = /^[\w-]{43}$/;

/**
 * A random value that recognizes the browser in which an authorization began. The cookie is `SameSite=Lax`, because the
 * provider's page leads back to the gateway.
 */
export class BrowserCookie {
  readonly #name: string;
  readonly #isSecure: boolean;
  readonly #random: Random;
  readonly #maxAgeMs: number;

  constructor(options: { port: number; isSecure: boolean; random: Random; maxAgeMs: number }) {
    const { port, isSecure, random, maxAgeMs } = options;
    // Services never get cookies with the name of a session cookie, and plugins cannot set them.
    this.#name = `${isSecure ? SECURE_PREFIX : ''}${sessionCookieName(`oauth-${port}`)}`;
    this.#isSecure = isSecure;
    this.#random = random;
    this.#maxAgeMs = maxAgeMs;
  }

  /** Returns the value of this browser, or a new one, with the `Set-Cookie` value that keeps it. */
  keep(rawHeaders: readonly string[]): { browser: string; setCookie: string } {
    const browser = this.read(rawHeaders) ?? this.#random.secret(SECRET_BYTES);
    const attributes = `Max-Age=${this.#maxAgeMs / 1000}; Path=/; HttpOnly; SameSite=Lax${this.#isSecure ? '; Secure' : ''}`;
    return { browser, setCookie: `${this.#name}=${browser}; ${attributes}` };
  }

  read(rawHeaders: readonly string[]): string | undefined {
    const header = singleHeader(rawHeaders, 'cookie');
    if (header === undefined || header === REPEATED) return undefined;
    const prefix = `${this.#name}=`;
    const found = header.split('; ').filter((pair) => pair.startsWith(prefix));
    const value = found.length === 1 ? found[0]!.slice(prefix.length) : '';
    return SECRET.test(value) ? value : undefined;
  }
}
