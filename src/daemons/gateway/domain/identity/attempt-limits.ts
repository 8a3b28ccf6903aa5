import { rateLimited } from '../../../../http/index.ts';
import { minutes } from '../../../../kit/duration.ts';
import type { CreateLimiter } from '../../../../kit/rate-limiter.ts';

/** Failures a minute. One address may be an office; one client at one address is one program that has it wrong. */
const PER_ADDRESS = 30;
const PER_CLIENT_AND_ADDRESS = 10;
/** Of one address, tried at once: as many as there are threads for scrypt. */
const AT_ONCE = 4;

export interface AttemptLimits {
  /**
   * Runs an attempt at credentials; failed ones count against the address, and against the client at that address, so
   * that nobody can lock a client out from elsewhere. Throws RATE_LIMIT_EXCEEDED without trying once they are too many.
   */
  guard<T>(ip: string, clientId: string | null, attempt: () => Promise<T>): Promise<T>;
}

/** Brute force: bounds the guesses, and the scrypt work that strangers can ask for. @spec docs/security.md "Guessing" */
export function createAttemptLimits(createLimiter: CreateLimiter): AttemptLimits {
  const failures = createLimiter('login attempts', { windowMs: minutes(1), exact: true });
  const inLine = createLines();

  async function counted<T>(keys: ReadonlyArray<[string, number]>, attempt: () => Promise<T>): Promise<T> {
    const taken: string[] = [];
    const giveBack = (): void => taken.forEach(failures.giveBack);
    // Counted before the outcome is known: a thousand attempts at once must not all find the count at zero.
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
      // The client first: a program that is refused again and again must not use up what its whole office has.
      const keys: Array<[string, number]> = [[ip, PER_ADDRESS]];
      if (clientId !== null) keys.unshift([`${ip} ${clientId}`, PER_CLIENT_AND_ADDRESS]);
      return inLine(ip, () => counted(keys, attempt));
    },
  };
}

/**
 * Runs what is asked for each key, a few at a time and in order. Without it, attempts under way, which count until they
 * succeed, would use up the failures that an address has: when fifty agents log in at once, after a restart.
 */
function createLines() {
  const lines = new Map<string, { running: number; waiting: Array<() => void> }>();
  return async <T>(key: string, run: () => Promise<T>): Promise<T> => {
    const line = lines.get(key) ?? { running: 0, waiting: [] };
    lines.set(key, line);
    if (line.running < AT_ONCE) line.running++;
    else await new Promise<void>((resolve) => line.waiting.push(resolve));
    try {
      return await run();
    } finally {
      const next = line.waiting.shift();
      // Whose place it was goes to the next.
      if (next) next();
      else if (--line.running === 0) lines.delete(key);
    }
  };
}
