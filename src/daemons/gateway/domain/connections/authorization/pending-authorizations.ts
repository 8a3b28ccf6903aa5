import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Seal, safeEqual } from '../../../../../kit/security/keys.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import type { ConnectionId, KeyValueStore } from '../../../../../store/ports/index.ts';
import { PLATFORM_SCOPE } from '../../identity/static-tokens.ts';

/** Time from the creation of a link, and from its opening, to the answer of the provider. */
export const AUTHORIZATION_MS = minutes(10);
const CONTEXT = 'connection authorization';

const Link = z.strictObject({
  namespaceId: z.string(),
  name: z.string(),
  id: z.string(),
  /** Who asked for the link, for the audit log. */
  hostId: z.string(),
});
export type Link = z.infer<typeof Link>;

const Pending = z.strictObject({
  ...Link.shape,
  verifier: z.string(),
  browser: z.string(),
  link: z.string(),
});

export interface PendingAuthorizationsDeps {
  cache: KeyValueStore;
  /** Encrypts verifiers, with a key derived from the internal secret. */
  seal: Seal;
  clock: Clock;
  random: Random;
}

/**
 * Links that begin an authorization, and authorizations that wait for the provider. The store keeps only digests of
 * tickets and states, so that read access to it does not allow to finish an authorization. Any gateway can finish one.
 */
export class PendingAuthorizations {
  readonly #deps: PendingAuthorizationsDeps;

  constructor(deps: PendingAuthorizationsDeps) {
    this.#deps = deps;
  }

  /** Creates a link. It can be opened several times, for example by a preview, but completed once. */
  async createLink({ namespaceId, name, id }: ConnectionId, hostId: string) {
    const { cache, clock, random } = this.#deps;
    const ticket = random.secret(32);
    const expiresAt = clock.now() + AUTHORIZATION_MS;
    const link: Link = { namespaceId, name, id, hostId };
    await cache.set(PLATFORM_SCOPE, linkKey(digest(ticket)), link, AUTHORIZATION_MS);
    return { ticket, expiresAt };
  }

  async findLink(ticket: string): Promise<Link | undefined> {
    const entry = await this.#deps.cache.get(PLATFORM_SCOPE, linkKey(digest(ticket)));
    return entry && Link.parse(entry.value);
  }

  /** Begins an authorization in one browser. */
  async begin(ticket: string, link: Link, browser: string): Promise<{ state: string; verifier: string }> {
    const { cache, seal, random } = this.#deps;
    const [state, verifier] = [random.secret(32), random.secret(32)];
    const pending = { ...link, verifier, browser: digest(browser), link: digest(ticket) };
    const sealed = seal.seal(JSON.stringify(pending), contextOf(state));
    await cache.set(PLATFORM_SCOPE, stateKey(state), sealed, AUTHORIZATION_MS);
    return { state, verifier };
  }

  /**
   * Takes an authorization that waits for the provider. One of several concurrent callers gets it, also on several
   * gateways. `other-browser` leaves it in place for the browser in which it began.
   */
  async take(
    state: string,
    browser: string | undefined,
  ): Promise<(Link & { verifier: string }) | 'unknown' | 'other-browser'> {
    const { cache, seal } = this.#deps;
    const entry = await cache.get(PLATFORM_SCOPE, stateKey(state));
    if (!entry) return 'unknown';
    const opened = Pending.parse(JSON.parse(seal.open(entry.value as string, contextOf(state))));
    const { browser: expected, link, ...taken } = opened;
    if (browser === undefined || !safeEqual(digest(browser), expected)) return 'other-browser';
    if (!(await cache.delete(PLATFORM_SCOPE, stateKey(state)))) return 'unknown';
    // Without the link, no further authorization can begin by it. Another one that it began finds no link here.
    if (!(await cache.delete(PLATFORM_SCOPE, linkKey(link)))) return 'unknown';
    return taken;
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');
const linkKey = (ticketDigest: string): string => `connection-link:${ticketDigest}`;
const stateKey = (state: string): string => `connection-state:${digest(state)}`;
const contextOf = (state: string): string => JSON.stringify([CONTEXT, digest(state)]);
