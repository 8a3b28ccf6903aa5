import pLimit, { type LimitFunction } from 'p-limit';
import { rateLimited } from '../../../../http/index.ts';
import type { CreateLimiter } from '../../../../kit/limits/rate-limiter.ts';
import { minutes } from '../../../../kit/time/duration.ts';

/**
 * Maximum failed attempts per minute. The limit per address is higher, because a whole office may share one address.
 */
const PER_ADDRESS = 30;
const PER_CLIENT_AND_ADDRESS = 10;
/** Maximum concurrent attempts per address, equal to the number of scrypt threads. */
const MAX_CONCURRENT_ATTEMPTS = 4;

export interface AttemptLimits {
  /**
   * Runs a login attempt. Failures count for the address, and for the client at this address, so that others cannot
   * lock a client out. Throws RATE_LIMIT_EXCEEDED without an attempt if a limit is reached.
   */
  guard<T>(ip: string, clientId: string | null, attempt: () => Promise<T>): Promise<T>;
}

/**
 * Creates limits that slow down guessing and bound the CPU time that unauthenticated clients spend on scrypt.
 * @spec docs/security.md "Guessing"
 */
export function createAttemptLimits(createLimiter: CreateLimiter): AttemptLimits {
  const failures = createLimiter('login attempts', { windowMs: minutes(1) });
  const concurrency = new ConcurrencyPerKey();

  async function counted<T>(keys: ReadonlyArray<[string, number]>, attempt: () => Promise<T>): Promise<T> {
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
    const result = await attempt();
    giveBack();
    return result;
  }

  return {
    guard(ip, clientId, attempt) {
      // The client's limit is checked first, so that one misconfigured program does not exhaust the limit of its whole
      // office.
      const keys: Array<[string, number]> = [[ip, PER_ADDRESS]];
      if (clientId !== null) keys.unshift([`${ip} ${clientId}`, PER_CLIENT_AND_ADDRESS]);
      return concurrency.run(ip, () => counted(keys, attempt));
    },
  };
}

/**
 * Limits concurrent attempts per key. Further attempts wait. Attempts in flight count as failures until they succeed,
 * so without this limit fifty agents that log in at once would exceed the failure limit.
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
