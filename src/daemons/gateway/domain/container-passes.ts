import { createHmac } from 'node:crypto';
import { type ExecutionRequest, LIMITS } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import { deriveKey, safeEqual } from '../../../kit/keys.ts';
import type { Logger } from '../../../kit/logger.ts';
import type { Jwts } from './jwt.ts';
import type { Revocations } from './revocations.ts';

/** Beyond the execution itself: a container's token must outlive its last call. */
const EXTRA_SECONDS = 60;
const PREFIX = 'container:';

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
  /** Whether the secret is the one issued with the container token of these claims. */
  isOwn(internalSecret: string, executionId: string): boolean;
}

export interface ContainerPassesDeps {
  jwts: Jwts;
  revocations: Revocations;
  internalSecret: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Mints what plugin containers authenticate with. Their internal secret is derived from ours and from their execution:
 * with the secret itself, a container that left its token out could dispatch for every namespace.
 * @spec Authentication 6, 7; docs/decisions.md "Hosts and containers"
 */
export function createContainerPasses(deps: ContainerPassesDeps): ContainerPasses {
  const { jwts, revocations, logger } = deps;
  const key = deriveKey(deps.internalSecret, 'container-dispatch');
  const secretOf = (executionId: string): string =>
    createHmac('sha256', key).update(executionId).digest('base64url');

  return {
    async issue({ executionId, tenantId, timeoutMs }) {
      const { token, jti, expiresAt } = await jwts.mint({
        hostId: PREFIX + executionId,
        namespaceId: tenantId,
        typ: 'container',
        executionId,
        ttlSeconds: Math.ceil(timeoutMs / 1000) + EXTRA_SECONDS,
      });
      return {
        token,
        internalSecret: secretOf(executionId),
        async end() {
          try {
            await revocations.revokeToken(jti, expiresAt + LIMITS.jwtClockToleranceSeconds * 1000);
          } catch (error) {
            logger.error('The token of a container that ended could not be revoked; it expires by itself', {
              meta: { executionId, expiresAt },
              error,
            });
          }
        },
      };
    },
    isOwn: (internalSecret, executionId) => safeEqual(internalSecret, secretOf(executionId)),
  };
}

/** The execution that a container's host id speaks of. */
export function executionOf({ hostId }: { hostId: string }): string {
  return hostId.slice(PREFIX.length);
}
