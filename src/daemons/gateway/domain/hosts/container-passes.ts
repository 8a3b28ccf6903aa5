import { createHmac } from 'node:crypto';
import { CONTAINER_HOST_PREFIX, type ExecutionRequest, LIMITS } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { deriveKey, safeEqual } from '../../../../kit/keys.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { KeyValueStore } from '../../../../store/ports/index.ts';
import type { Jwts } from '../identity/jwt.ts';
import type { Revocations } from '../identity/revocations.ts';
import { PLATFORM_SCOPE } from '../identity/static-tokens.ts';

/** Beyond the execution itself: a container's token must outlive its last call. */
const EXTRA_SECONDS = 60;
/** Of the tokens in force, in the platform cache. */
const KEY_PREFIX = 'container-pass:';
const PAGE = 100;

/** What a container of one execution is given to call the platform by. */
export interface ContainerPass {
  /** The container execution JWT. */
  token: string;
  /** For `X-Internal-Secret`; good for this execution alone, and only together with the token. */
  internalSecret: string;
  /** Nothing of it is accepted any more. */
  end(): Promise<void>;
}

export interface ContainerPasses {
  issue(request: ExecutionRequest): Promise<ContainerPass>;
  /** Ends those that a gateway which was killed left in force; how many those were. */
  endFormer(): Promise<number>;
  /** Whether the secret is the one issued with the container token of these claims. */
  isOwn(internalSecret: string, executionId: string): boolean;
}

export interface ContainerPassesDeps {
  jwts: Jwts;
  revocations: Revocations;
  /** Remembers what is in force, so that it ends with its gateway however that one ends. */
  cache: KeyValueStore;
  internalSecret: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Mints what plugin containers authenticate with. Their internal secret is derived from ours and from their execution:
 * with the secret itself, a container that left its token out could dispatch for every namespace.
 * @spec Authentication 6, 7; docs/decisions/0040
 */
export function createContainerPasses(deps: ContainerPassesDeps): ContainerPasses {
  const { jwts, revocations, cache, clock, logger } = deps;
  const key = deriveKey(deps.internalSecret, 'container-dispatch');
  const secretOf = (executionId: string): string =>
    createHmac('sha256', key).update(executionId).digest('base64url');

  /** Refused from now on; forgotten only then. */
  async function revoke(jti: string, refusedUntil: number): Promise<void> {
    await revocations.revokeToken(jti, refusedUntil);
    await cache.delete(PLATFORM_SCOPE, KEY_PREFIX + jti);
  }

  return {
    async issue({ executionId, tenantId, timeoutMs }) {
      const { token, jti, expiresAt } = await jwts.mint({
        hostId: CONTAINER_HOST_PREFIX + executionId,
        namespaceId: tenantId,
        typ: 'container',
        executionId,
        ttlSeconds: Math.ceil(timeoutMs / 1000) + EXTRA_SECONDS,
      });
      const refusedUntil = expiresAt + LIMITS.jwtClockToleranceSeconds * 1000;
      // On disk before anybody has the token.
      await cache.set(PLATFORM_SCOPE, KEY_PREFIX + jti, { refusedUntil }, refusedUntil - clock.now());
      return {
        token,
        internalSecret: secretOf(executionId),
        async end() {
          try {
            await revoke(jti, refusedUntil);
          } catch (error) {
            logger.error('The token of a container that ended could not be revoked; it expires by itself', {
              meta: { executionId, expiresAt },
              error,
            });
          }
        },
      };
    },
    async endFormer() {
      for (let ended = 0; ; ) {
        const left = await cache.scan(PLATFORM_SCOPE, { prefix: KEY_PREFIX, limit: PAGE });
        for (const { key, value } of left)
          await revoke(key.slice(KEY_PREFIX.length), (value as { refusedUntil: number }).refusedUntil);
        ended += left.length;
        if (left.length < PAGE) return ended;
      }
    },
    isOwn: (internalSecret, executionId) => safeEqual(internalSecret, secretOf(executionId)),
  };
}

/** The execution that a container's host id speaks of. */
export function executionOf({ hostId }: { hostId: string }): string {
  return hostId.slice(CONTAINER_HOST_PREFIX.length);
}
