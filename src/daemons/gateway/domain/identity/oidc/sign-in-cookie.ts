import { z } from 'zod';
import { REPEATED, singleHeader } from '../../../../../kit/data/raw-headers.ts';
import { createSeal, deriveKey, type Seal } from '../../../../../kit/security/keys.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import { sessionCookieName } from '../session-cookie.ts';

/** Time for a person to sign in at the provider. */
const SIGN_IN_MS = minutes(10);
const CONTEXT = 'studio-oidc';
/** Browsers accept this prefix only over HTTPS and from this very host. */
const SECURE_PREFIX = '__Host-';

const PendingSignIn = z.strictObject({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  returnTo: z.string(),
  expiresAt: z.number(),
});
export type PendingSignIn = z.infer<typeof PendingSignIn>;

/**
 * Keeps a sign-in that has begun in an encrypted cookie of the browser, so that any gateway can finish it. The cookie is
 * `SameSite=Lax`, because the provider's page leads back to the gateway. @spec docs/decisions/0233
 */
export class SignInCookie {
  readonly #name: string;
  readonly #isSecure: boolean;
  readonly #seal: Seal;
  readonly #clock: Clock;

  constructor(options: { port: number; isSecure: boolean; secret: string; clock: Clock }) {
    const { port, isSecure, secret, clock } = options;
    // Services never get cookies with the name of a session cookie, and plugins cannot set them.
    this.#name = `${isSecure ? SECURE_PREFIX : ''}${sessionCookieName(`oidc-${port}`)}`;
    this.#isSecure = isSecure;
    this.#seal = createSeal(deriveKey(secret, CONTEXT));
    this.#clock = clock;
  }

  /** Returns the `Set-Cookie` value that keeps a sign-in. */
  start(pending: Omit<PendingSignIn, 'expiresAt'>): string {
    const expiresAt = this.#clock.now() + SIGN_IN_MS;
    const sealed = this.#seal.seal(JSON.stringify({ ...pending, expiresAt }), CONTEXT);
    return `${this.#name}=${sealed}; Max-Age=${SIGN_IN_MS / 1000}; ${this.#attributes()}`;
  }

  /** Returns the sign-in of this browser. Undefined if there is none, if it has expired or was forged. */
  read(rawHeaders: readonly string[]): PendingSignIn | undefined {
    const header = singleHeader(rawHeaders, 'cookie');
    if (header === undefined || header === REPEATED) return undefined;
    const prefix = `${this.#name}=`;
    const found = header.split('; ').filter((pair) => pair.startsWith(prefix));
    if (found.length !== 1) return undefined;
    const pending = this.#open(found[0]!.slice(prefix.length));
    return pending && pending.expiresAt > this.#clock.now() ? pending : undefined;
  }

  /** Returns the `Set-Cookie` value that deletes the cookie. */
  end(): string {
    return `${this.#name}=; Max-Age=0; ${this.#attributes()}`;
  }

  #open(sealed: string): PendingSignIn | undefined {
    try {
      return PendingSignIn.parse(JSON.parse(this.#seal.open(sealed, CONTEXT)));
    } catch {
      return undefined;
    }
  }

  #attributes(): string {
    return `Path=/; HttpOnly; SameSite=Lax${this.#isSecure ? '; Secure' : ''}`;
  }
}
