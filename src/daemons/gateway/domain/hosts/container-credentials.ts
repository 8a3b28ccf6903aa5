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

/**
 * Time for which a token stays valid after the execution's timeout, in seconds. The container can finish its last call
 * in this time.
 */
const EXTRA_SECONDS = 60;
/** Cache key prefix of active tokens. */
const KEY_PREFIX = 'container-pass:';
const PAGE = 100;

/** Token of a container that might still be running. */
interface ActiveToken {
  refusedUntil: number;
  /** Fence token of the gateway that issued the container token. Entries of earlier versions have no owner. */
  owner?: number;
}

/** Credentials of one execution's container, for calls to the platform. */
export interface ContainerCredential {
  /** A JWT that identifies the execution. */
  token: string;
  /** Value of the `X-Internal-Secret` header, which is accepted only together with the token. */
  internalSecret: string;
  end(): Promise<void>;
}

export interface ContainerCredentials {
  issue(request: ExecutionRequest): Promise<ContainerCredential>;
  /** Revokes orphaned tokens, whose gateway ended without revoking the tokens. Returns the number of revoked tokens. */
  revokeOrphans(): Promise<number>;
  /** Returns whether this internal secret was issued for the execution. */
  isOwn(internalSecret: string, executionId: string): boolean;
}

export interface ContainerCredentialsDeps {
  jwts: Jwts;
  revocations: Revocations;
  /** Cache that stores active tokens, so that the next gateway can revoke these tokens after a crash. */
  cache: KeyValueStore;
  members: Pick<MemberStore, 'unended'>;
  fence: Fence;
  internalSecret: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Issues credentials for containers. Each execution gets its own internal secret, derived from the platform's secret.
 * The platform's secret would let a container dispatch for any namespace without a token. @spec Authentication 6, 7;
 * docs/decisions/0040
 */
export function createContainerCredentials(deps: ContainerCredentialsDeps): ContainerCredentials {
  const { jwts, revocations, cache, members, fence, clock, logger } = deps;
  const key = deriveKey(deps.internalSecret, 'container-dispatch');
  const secretOf = (executionId: string): string =>
    createHmac('sha256', key).update(executionId).digest('base64url');

  /**
   * Revokes tokens before their cache entries are deleted. After a crash between the two steps, the next gateway
   * repeats the revocation.
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
      // The token is stored before the container receives the token. A gateway can therefore revoke the token after a
      // crash.
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
        // The running gateways are read after the scan. Otherwise tokens of a gateway that starts during the scan would
        // count as orphans.
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

/** Extracts the execution id from the host id of a container. */
export function executionOf({ hostId }: { hostId: string }): string {
  return hostId.slice(CONTAINER_HOST_PREFIX.length);
}
