import { rateLimited } from '../../../../http/index.ts';
import { minutes } from '../../../../kit/duration.ts';
import type { CreateLimiter } from '../../../../kit/rate-limiter.ts';

/** Failures a minute. One address may be an office; one client at one address is one program that has it wrong. */
const PER_ADDRESS = 30;
const PER_CLIENT_AND_ADDRESS = 10;

export interface AttemptLimits {
  /**
   * Runs an attempt at credentials; failed ones count against the address, and against the client at that address, so
   * that nobody can lock a client out from elsewhere. Throws RATE_LIMIT_EXCEEDED without trying once they are too many.
   */
  guard<T>(ip: string, clientId: string | null, attempt: () => Promise<T>): Promise<T>;
}

/** Brute force: bounds the guesses, and the scrypt work that strangers can ask for. @spec docs/decisions.md "Limits" */
export function createAttemptLimits(createLimiter: CreateLimiter): AttemptLimits {
  const failures = createLimiter('login attempts', { windowMs: minutes(1), exact: true });

  return {
    async guard(ip, clientId, attempt) {
      const keys: Array<[string, number]> = [[ip, PER_ADDRESS]];
      if (clientId !== null) keys.push([`${ip} ${clientId}`, PER_CLIENT_AND_ADDRESS]);
      // Counted before the outcome is known: a thousand attempts at once must not all find the count at zero.
      for (const [key, limit] of keys) {
        const { allowed, resetMs } = await failures.take(key, limit);
        if (!allowed) throw rateLimited(limit, resetMs);
      }
      const result = await attempt();
      for (const [key] of keys) failures.giveBack(key);
      return result;
    },
  };
}
