import { createHash } from 'node:crypto';
import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes } from '../../../../kit/time/duration.ts';
import type { KeyValueStore } from '../../../../store/ports/index.ts';
import { PLATFORM_SCOPE } from '../identity/static-tokens.ts';

const LIFE_MS = minutes(15);
const PREFIX = 'svce_';

export interface Invitation {
  token: string;
  namespaceId: string;
  expiresAt: number;
}

export interface EnrolmentsDeps {
  cache: KeyValueStore;
  clock: Clock;
  random: Random;
}

export type Enrolments = ReturnType<typeof createEnrolments>;

/**
 * Creates and redeems enrolment tokens. Each token registers one machine in one namespace and expires after 15 minutes.
 * @spec docs/operations.md "Agents"
 */
export function createEnrolments({ cache, clock, random }: EnrolmentsDeps) {
  // Only digests of tokens are stored, so that read access to the database does not allow enrolment.
  const keyOf = (token: string): string =>
    `enrolment:${createHash('sha256').update(token).digest('base64url')}`;
  return {
    async invite(namespaceId: string): Promise<Invitation> {
      const token = PREFIX + random.secret(32);
      const expiresAt = clock.now() + LIFE_MS;
      await cache.set(PLATFORM_SCOPE, keyOf(token), { namespaceId }, LIFE_MS);
      return { token, namespaceId, expiresAt };
    },
    looksLikeOne: (token: string): boolean => token.startsWith(PREFIX),
    /** Returns the namespace of the token and invalidates the token. Returns undefined for an invalid token. */
    async redeem(token: string): Promise<string | undefined> {
      const entry = await cache.get(PLATFORM_SCOPE, keyOf(token));
      if (!entry || !(await cache.delete(PLATFORM_SCOPE, keyOf(token)))) return undefined;
      return (entry.value as { namespaceId: string }).namespaceId;
    },
  };
}
