import { type Caller, LIMITS } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { MintedTokenStore } from '../../../../store/ports/index.ts';
import { pageOf } from '../page.ts';
import type { Admins } from './admins.ts';
import type { Jwts } from './jwt.ts';
import type { Revocations } from './revocations.ts';

export interface MintedTokensDeps {
  store: MintedTokenStore;
  jwts: Jwts;
  revocations: Revocations;
  admins: Admins;
  clock: Clock;
  logger: Logger;
}

/** Prefix of the ids of tokens that are sessions of the studio. */
export const SESSION_ID_PREFIX = 'studio_';

/** Identity for which a session is created. The ids of its own token or login revoke the session too. */
export interface SessionOwner extends Caller {
  jti?: string | null;
  sid?: string | undefined;
  /** For a person of an identity provider: the values of the claim that decides about roles. */
  roleValues?: readonly string[] | undefined;
}

export type MintedTokens = ReturnType<typeof createMintedTokens>;

/** Creates the service for access tokens that administrators issue and revoke. @spec docs/gateway.md "Who may call" */
export function createMintedTokens({ store, jwts, revocations, admins, clock, logger }: MintedTokensDeps) {
  // Expired tokens are accepted within the clock tolerance. The revocation is therefore kept until the tolerance has
  // passed.
  const revoke = (jti: string, expiresAt: number) =>
    revocations.revokeToken(jti, expiresAt + seconds(LIMITS.jwtClockToleranceSeconds));
  return {
    /** Issues the token of a studio session. The token is listed and can be revoked like other minted tokens. */
    async mintSession({ hostId, namespaceId, jti: from, sid, roleValues }: SessionOwner, ttlSeconds: number) {
      const login = sid ?? from ?? undefined;
      const minted = await jwts.mint({
        ...{ hostId, namespaceId, ttlSeconds, idPrefix: SESSION_ID_PREFIX },
        ...(roleValues ? { typ: 'oidc', roleValues } : { typ: 'access' }),
        ...(login === undefined ? {} : { sid: login }),
      });
      const { token, jti, expiresAt } = minted;
      const createdAt = clock.now();
      await store.add({ jti, hostId, namespaceId, createdBy: hostId, createdAt, expiresAt, revokedAt: null });
      return { token, expiresAt };
    },
    /** Revokes the token of a studio session at its sign-out. */
    endSession: (jti: string, expiresAt: number) => revoke(jti, expiresAt),
    async mint(
      caller: Caller,
      asked: { hostId: string; namespaceId?: string | undefined; ttlSeconds: number },
    ) {
      admins.require(caller);
      const { hostId, ttlSeconds } = asked;
      const namespaceId = admins.scope(caller, asked.namespaceId);
      if (revocations.isRevoked({ hostId, jti: null })) {
        throw new PlatformError(
          'CONFLICT',
          `The host "${hostId}" was revoked, so its tokens cannot be valid.`,
        );
      }
      const { token, jti, expiresAt } = await jwts.mint({ hostId, namespaceId, typ: 'access', ttlSeconds });
      const createdAt = clock.now();
      await store.add({
        jti,
        hostId,
        namespaceId,
        createdBy: caller.hostId,
        createdAt,
        expiresAt,
        revokedAt: null,
      });
      return { token, jti, hostId, namespaceId, expiresAt };
    },
    async list(
      caller: Caller,
      query: { namespaceId?: string | undefined; limit: number; cursor?: string | undefined },
    ) {
      const scope = admins.listScope(caller, query.namespaceId);
      const { limit, cursor } = query;
      const range = { now: clock.now(), limit: limit + 1, ...(cursor ? { before: cursor } : {}) };
      return pageOf(
        await store.list(scope, range),
        limit,
        ({ jti }) => jti,
        (record) => record,
      );
    },
    async revoke(caller: Caller, jti: string): Promise<void> {
      admins.require(caller);
      const token = await store.find(jti);
      if (!token) {
        throw new PlatformError(
          'NOT_FOUND',
          `There is no minted token with the id "${jti}"; list all with \`svc tokens list\`. To revoke a client's tokens, use \`svc clients revoke\`.`,
        );
      }
      await revoke(jti, token.expiresAt);
      logger.diagnostic({
        domain: 'auth',
        event: 'token.revoked',
        level: 'warn',
        reasonCode: 'REVOKED',
        message: `A token of "${token.hostId}" was revoked by ${caller.hostId}`,
        outcome: 'succeeded',
        evidence: { jti, hostId: token.hostId, by: caller.hostId },
      });
    },
  };
}
