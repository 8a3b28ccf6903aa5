import { createHmac } from 'node:crypto';
import { CONTAINER_HOST_PREFIX, type ExecutionRequest, LIMITS } from '../../../../contracts/index.ts';
import { deriveKey, safeEqual } from '../../../../kit/security/keys.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { KeyValueStore } from '../../../../store/ports/index.ts';
import type { Jwts } from '../identity/jwt.ts';
import type { Revocations } from '../identity/revocations.ts';
import { PLATFORM_SCOPE } from '../identity/static-tokens.ts';

/** Added to the execution's time limit: the token must outlive the container's last call. */
const EXTRA_SECONDS = 60;
/** Prefix of active tokens in the platform cache. */
const KEY_PREFIX = 'container-pass:';
const PAGE = 100;

/** Credentials that a container of one execution calls the platform with. */
export interface ContainerCredential {
  /** The container execution JWT. */
  token: string;
  /** For `X-Internal-Secret`; valid only for this execution and together with the token. */
  internalSecret: string;
  /** Revokes the credentials. */
  end(): Promise<void>;
}

export interface ContainerCredentials {
  issue(request: ExecutionRequest): Promise<ContainerCredential>;
  /** Revokes tokens left active by a killed gateway; returns their number. */
  revokeOrphans(): Promise<number>;
  /** Whether the secret was issued with the token of this execution. */
  isOwn(internalSecret: string, executionId: string): boolean;
}

export interface ContainerCredentialsDeps {
  jwts: Jwts;
  revocations: Revocations;
  /** Stores active tokens, so that the next gateway can revoke those of a crashed one. */
  cache: KeyValueStore;
  internalSecret: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Issues credentials for plugin containers. Their internal secret is derived from the platform's secret and the
 * execution: with the real one, a container that omits its token could dispatch for any namespace.
 * @spec Authentication 6, 7; docs/decisions/0040
 */
export function createContainerCredentials(deps: ContainerCredentialsDeps): ContainerCredentials {
  const { jwts, revocations, cache, clock, logger } = deps;
  const key = deriveKey(deps.internalSecret, 'container-dispatch');
  const secretOf = (executionId: string): string =>
    createHmac('sha256', key).update(executionId).digest('base64url');

  /** Deletes the entry only after the revocation took effect. */
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
      // The token must be on disk before the container gets it.
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

/** The execution id within a container's host id. */
export function executionOf({ hostId }: { hostId: string }): string {
  return hostId.slice(CONTAINER_HOST_PREFIX.length);
}
