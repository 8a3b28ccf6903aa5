import { rateLimited } from '../../../../http/index.ts';
import type { CreateLimiter } from '../../../../kit/limits/rate-limiter.ts';
import { minutes } from '../../../../kit/time/duration.ts';

/**
 * Failed attempts per minute. An address may be shared by an office; a client at an address is one
 * misconfigured program.
 */
const PER_ADDRESS = 30;
const PER_CLIENT_AND_ADDRESS = 10;
/** Concurrent attempts per address: as many as there are scrypt threads. */
const AT_ONCE = 4;

export interface AttemptLimits {
  /**
   * Runs a login attempt. Failures count against the address, and against the client at that address, so that
   * others cannot lock a client out. Throws RATE_LIMIT_EXCEEDED above the limit, without trying.
   */
  guard<T>(ip: string, clientId: string | null, attempt: () => Promise<T>): Promise<T>;
}

/**
 * Brute-force protection: bounds guesses and the scrypt work of unauthenticated clients.
 * @spec docs/security.md "Guessing"
 */
export function createAttemptLimits(createLimiter: CreateLimiter): AttemptLimits {
  const failures = createLimiter('login attempts', { windowMs: minutes(1), exact: true });
  const serialized = createQueues();

  async function counted<T>(keys: ReadonlyArray<[string, number]>, attempt: () => Promise<T>): Promise<T> {
    const taken: string[] = [];
    const giveBack = (): void => taken.forEach(failures.giveBack);
    // Counted before the attempt, so that a thousand concurrent attempts do not all see a count of zero.
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
      // The client's limit first, so that one misconfigured program does not use up the limit of its whole
      // office.
      const keys: Array<[string, number]> = [[ip, PER_ADDRESS]];
      if (clientId !== null) keys.unshift([`${ip} ${clientId}`, PER_CLIENT_AND_ADDRESS]);
      return serialized(ip, () => counted(keys, attempt));
    },
  };
}

/**
 * Runs attempts of each key in order, with limited concurrency. In-flight attempts count as failures until
 * they succeed, so that fifty agents that log in at once would otherwise exceed the limit.
 */
function createQueues() {
  const queues = new Map<string, { running: number; waiting: Array<() => void> }>();
  return async <T>(key: string, run: () => Promise<T>): Promise<T> => {
    const queue = queues.get(key) ?? { running: 0, waiting: [] };
    queues.set(key, queue);
    if (queue.running < AT_ONCE) queue.running++;
    else await new Promise<void>((resolve) => queue.waiting.push(resolve));
    try {
      return await run();
    } finally {
      const next = queue.waiting.shift();
      // The slot passes to the next waiter.
      if (next) next();
      else if (--queue.running === 0) queues.delete(key);
    }
  };
}
