import pLimit, { type LimitFunction } from 'p-limit';
import { rateLimited } from '../../../../http/index.ts';
import type { CreateLimiter } from '../../../../kit/limits/rate-limiter.ts';
import { minutes } from '../../../../kit/time/duration.ts';

/**
 * Maximum failed login attempts per minute. The limit per address is higher, because a whole office can share one IP
 * address.
 */
const PER_ADDRESS = 30;
const PER_CLIENT_AND_ADDRESS = 10;
/** Maximum concurrent login attempts per IP address, equal to the number of scrypt threads. */
const MAX_CONCURRENT_ATTEMPTS = 4;

export interface AttemptLimits {
  /**
   * Runs a login attempt. Failures of a client are counted per IP address, so that other senders cannot lock out the
   * client. Throws RATE_LIMIT_EXCEEDED without running the attempt if a limit is reached.
   */
  guard<T>(ip: string, clientId: string | null, attempt: () => Promise<T>): Promise<T>;
  /**
   * Runs a step of a sign-in with the identity provider. Its failures are counted apart from logins, because any web page
   * can make a browser open these addresses. `isCounted` returns whether a failure counts.
   */
  guardSignIn<T>(ip: string, isCounted: (error: unknown) => boolean, attempt: () => Promise<T>): Promise<T>;
}

/**
 * Creates limits that slow down password guessing. The limits also bound the CPU time that unauthenticated clients can
 * spend on scrypt. @spec docs/security.md "Guessing"
 */
export function createAttemptLimits(createLimiter: CreateLimiter): AttemptLimits {
  const failures = createLimiter('login attempts', { windowMs: minutes(1) });
  const concurrency = new ConcurrencyPerKey();

  async function counted<T>(
    keys: ReadonlyArray<[string, number]>,
    attempt: () => Promise<T>,
    isCounted: (error: unknown) => boolean = () => true,
  ): Promise<T> {
    const taken: string[] = [];
    const giveBack = (): void => {
      for (const key of taken) failures.giveBack(key);
    };
    // Attempts are counted before they start. Otherwise a thousand concurrent attempts would all see a count of zero.
    for (const [key, limit] of keys) {
      const { allowed, resetMs } = await failures.take(key, limit);
      if (!allowed) {
        giveBack();
        throw rateLimited(limit, resetMs);
      }
      taken.push(key);
    }
    try {
      const result = await attempt();
      giveBack();
      return result;
    } catch (error) {
      if (!isCounted(error)) giveBack();
      throw error;
    }
  }

  return {
    guard(ip, clientId, attempt) {
      // The client's limit is checked first. One misconfigured client then cannot exhaust the limit of all clients at
      // its address.
      const keys: Array<[string, number]> = [[ip, PER_ADDRESS]];
      if (clientId !== null) keys.unshift([`${ip} ${clientId}`, PER_CLIENT_AND_ADDRESS]);
      return concurrency.run(ip, () => counted(keys, attempt));
    },
    guardSignIn(ip, isCounted, attempt) {
      const key = `oidc ${ip}`;
      return concurrency.run(key, () => counted([[key, PER_ADDRESS]], attempt, isCounted));
    },
  };
}

/**
 * Limits concurrent attempts per key and queues further attempts. Attempts in flight count as failures. Without this
 * limit, fifty agents that log in at the same time would exceed the failure limit.
 */
class ConcurrencyPerKey {
  readonly #keys = new Map<string, { limit: LimitFunction; users: number }>();

  async run<T>(key: string, attempt: () => Promise<T>): Promise<T> {
    const entry = this.#keys.get(key) ?? { limit: pLimit(MAX_CONCURRENT_ATTEMPTS), users: 0 };
    this.#keys.set(key, entry);
    entry.users++;
    try {
      return await entry.limit(attempt);
    } finally {
      if (--entry.users === 0) this.#keys.delete(key);
    }
  }
}
