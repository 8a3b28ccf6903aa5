import { createHmac } from 'node:crypto';
import { CONTAINER_HOST_PREFIX, type ExecutionRequest, LIMITS } from '../../../../contracts/index.ts';
import { deriveKey, safeEqual } from '../../../../kit/security/keys.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { KeyValueStore, MemberStore } from '../../../../store/ports/index.ts';
import type { Fence } from '../../../membership/membership.ts';
import type { Jwts } from '../identity/jwt.ts';
import type { Revocations, RevokedToken } from '../identity/revocations.ts';
import { PLATFORM_SCOPE } from '../identity/static-tokens.ts';

/** Time for which a token stays valid after the execution's timeout, so that the container can finish its last call. */
const EXTRA_SECONDS = 60;
/** Cache key prefix of active tokens. */
const KEY_PREFIX = 'container-pass:';
const PAGE = 100;

/** A token whose container may still run. */
interface ActiveToken {
  refusedUntil: number;
  /** Fence of the gateway that issued the token. Entries written by earlier versions have no owner. */
  owner?: number;
}

/** Credentials with which the container of one execution calls the platform. */
export interface ContainerCredential {
  /** A JWT that identifies the execution. */
  token: string;
  /** Value for `X-Internal-Secret`. The value is accepted only together with the token. */
  internalSecret: string;
  end(): Promise<void>;
}

export interface ContainerCredentials {
  issue(request: ExecutionRequest): Promise<ContainerCredential>;
  /** Revokes the tokens of gateways that ended without revoking them. Returns the number of tokens. */
  revokeOrphans(): Promise<number>;
  /** Whether this internal secret was issued for the execution. */
  isOwn(internalSecret: string, executionId: string): boolean;
}

export interface ContainerCredentialsDeps {
  jwts: Jwts;
  revocations: Revocations;
  /** Stores active tokens. After a crash, the next gateway revokes them. */
  cache: KeyValueStore;
  members: Pick<MemberStore, 'unended'>;
  fence: Fence;
  internalSecret: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Issues credentials for containers. Each execution has its own internal secret, which is derived from the platform's
 * secret. A container that had the platform's secret could omit its token and dispatch for any namespace. @spec
 * Authentication 6, 7; docs/decisions/0040
 */
export function createContainerCredentials(deps: ContainerCredentialsDeps): ContainerCredentials {
  const { jwts, revocations, cache, members, fence, clock, logger } = deps;
  const key = deriveKey(deps.internalSecret, 'container-dispatch');
  const secretOf = (executionId: string): string =>
    createHmac('sha256', key).update(executionId).digest('base64url');

  /**
   * Revokes tokens and then deletes their cache entries. After a crash between the two, the next gateway repeats the
   * revocation.
   */
  async function revoke(tokens: readonly RevokedToken[]): Promise<void> {
    await revocations.revokeTokens(tokens);
    await Promise.all(tokens.map(({ id }) => cache.delete(PLATFORM_SCOPE, KEY_PREFIX + id)));
  }

  return {
    async issue({ executionId, tenantId, timeoutMs }) {
      const owner = fence.require();
      const { token, jti, expiresAt } = await jwts.mint({
        hostId: CONTAINER_HOST_PREFIX + executionId,
        namespaceId: tenantId,
        typ: 'container',
        executionId,
        ttlSeconds: Math.ceil(timeoutMs / 1000) + EXTRA_SECONDS,
      });
      const refusedUntil = expiresAt + LIMITS.jwtClockToleranceSeconds * 1000;
      // The token is stored before the container gets it, so that it can be revoked after a crash.
      const entry: ActiveToken = { refusedUntil, owner };
      await cache.set(PLATFORM_SCOPE, KEY_PREFIX + jti, { ...entry }, refusedUntil - clock.now());
      return {
        token,
        internalSecret: secretOf(executionId),
        async end() {
          try {
            await revoke([{ id: jti, expiresAt: refusedUntil }]);
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
      let revoked = 0;
      for (let after: string | undefined; ; ) {
        const range = { prefix: KEY_PREFIX, limit: PAGE, ...(after ? { after } : {}) };
        const page = await cache.scan(PLATFORM_SCOPE, range);
        // Read after the scan. Otherwise tokens of a gateway that starts during the scan would count as orphans.
        const unended = page.length === 0 ? [] : await members.unended('gateway');
        const orphans = page.flatMap(({ key, value }) => {
          const { refusedUntil, owner } = value as unknown as ActiveToken;
          const isOwned = owner !== undefined && unended.includes(owner);
          return isOwned ? [] : [{ id: key.slice(KEY_PREFIX.length), expiresAt: refusedUntil }];
        });
        await revoke(orphans);
        revoked += orphans.length;
        if (page.length < PAGE) return revoked;
        after = page.at(-1)!.key;
      }
    },
    isOwn: (internalSecret, executionId) => safeEqual(internalSecret, secretOf(executionId)),
  };
}

/** Returns the execution id of a container, which is a part of its host id. */
export function executionOf({ hostId }: { hostId: string }): string {
  return hostId.slice(CONTAINER_HOST_PREFIX.length);
}
