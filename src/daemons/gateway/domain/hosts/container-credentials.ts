import { createHmac } from 'node:crypto';
import { CONTAINER_HOST_PREFIX, type ExecutionRequest, LIMITS } from '../../../../contracts/index.ts';
import { deriveKey, safeEqual } from '../../../../kit/security/keys.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { KeyValueStore } from '../../../../store/ports/index.ts';
import type { Jwts } from '../identity/jwt.ts';
import type { Revocations } from '../identity/revocations.ts';
import { PLATFORM_SCOPE } from '../identity/static-tokens.ts';

/** Added to the execution's time limit, so that the token is valid for the container's last call. */
const EXTRA_SECONDS = 60;
/** Key prefix of active tokens in the cache. */
const KEY_PREFIX = 'container-pass:';
const PAGE = 100;

/** Credentials that the container of one execution uses to call the platform. */
export interface ContainerCredential {
  /** The container execution JWT. */
  token: string;
  /** Value for `X-Internal-Secret`. It is valid only for this execution and together with the token. */
  internalSecret: string;
  /** Revokes the credentials. */
  end(): Promise<void>;
}

export interface ContainerCredentials {
  issue(request: ExecutionRequest): Promise<ContainerCredential>;
  /** Revokes tokens that a killed gateway left active. Returns their number. */
  revokeOrphans(): Promise<number>;
  /** Returns whether the secret was issued together with the token of this execution. */
  isOwn(internalSecret: string, executionId: string): boolean;
}

export interface ContainerCredentialsDeps {
  jwts: Jwts;
  revocations: Revocations;
  /** Stores active tokens. After a crash, the next gateway revokes them. */
  cache: KeyValueStore;
  internalSecret: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Issues credentials for containers. Their internal secret is derived from the platform's secret and the execution id:
 * with the platform's own, a container could omit its token and dispatch for any namespace.
 * @spec Authentication 6, 7; docs/decisions/0040
 */
export function createContainerCredentials(deps: ContainerCredentialsDeps): ContainerCredentials {
  const { jwts, revocations, cache, clock, logger } = deps;
  const key = deriveKey(deps.internalSecret, 'container-dispatch');
  const secretOf = (executionId: string): string =>
    createHmac('sha256', key).update(executionId).digest('base64url');

  /** Revokes a token, and then deletes its cache entry. After a crash in between, the next gateway revokes it again. */
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
      // The token must be on disk before the container gets it, so that it can be revoked after a crash.
      await cache.set(PLATFORM_SCOPE, KEY_PREFIX + jti, { refusedUntil }, refusedUntil - clock.now());
      return {
        token,
        internalSecret: secretOf(executionId),
        async end() {
          try {
            await revoke(jti, refusedUntil);
          } catch (error) {
            logger.error('The token of an ended container could not be revoked; it expires by itself', {
              meta: { executionId, expiresAt },
              error,
            });
          }
        },
      };
    },
    async revokeOrphans() {
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

/** Returns the execution id that the host id of a container contains. */
export function executionOf({ hostId }: { hostId: string }): string {
  return hostId.slice(CONTAINER_HOST_PREFIX.length);
}
