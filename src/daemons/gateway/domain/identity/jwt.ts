import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import {
  ChosenHostId,
  CONTAINER_HOST_PREFIX,
  HostId,
  LIMITS,
  NamespaceId,
  OIDC_HOST_PREFIX,
} from '../../../../contracts/index.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { type AuthFault, isCanonicalJwt } from './bearer.ts';
import type { SigningKeys } from './signing-secrets.ts';

/**
 * Type of a token. A container token is never accepted in place of an access token. `oidc` is the session of a person of
 * an identity provider: gateways that do not know the type refuse it, and so never ignore its roles.
 */
export type TokenType = 'access' | 'container' | 'oidc';

const ALGORITHM = 'HS256';

/**
 * Claims of a JWT. Times are in epoch seconds, and `sid` is the id of the login. Programs that sign tokens with the
 * same secret can omit `jti` and `typ`. @spec JWT claims; Authentication 1
 */
const Claims = z
  .object({
    hostId: HostId,
    namespaceId: NamespaceId,
    exp: z.number(),
    typ: z.enum(['access', 'container', 'oidc']).optional(),
    jti: z.string().min(1).max(256).optional(),
    executionId: z.string().optional(),
    sid: z.string().min(1).max(256).optional(),
    roleValues: z.array(z.string()).optional(),
  })
  .transform((claims) => ({ ...claims, typ: claims.typ ?? typeOf(claims.hostId) }))
  .refine(
    ({ hostId, typ }) =>
      typ === 'container' ||
      (typ === 'oidc' ? hostId.startsWith(OIDC_HOST_PREFIX) : ChosenHostId.safeParse(hostId).success),
  );
export type Claims = z.infer<typeof Claims>;

export interface TokenGrant {
  hostId: string;
  namespaceId: string;
  typ: TokenType;
  ttlSeconds: number;
  /** Id of the execution. Set only in container tokens. */
  executionId?: string;
  /** Id of the login, which is also the family id of the login's refresh tokens. */
  sid?: string;
  /** Values of the claim that decides about the person's roles. Set only in `oidc` tokens. */
  roleValues?: readonly string[];
  /** Prefix of the token's id, such as `studio_`. */
  idPrefix?: string;
}

export interface MintedToken {
  token: string;
  jti: string;
  /** Expiry in epoch ms. */
  expiresAt: number;
}

export interface Jwts {
  mint(grant: TokenGrant): Promise<MintedToken>;
  /** Returns the claims of a valid token, or the fault of an invalid token. */
  verify(token: string): Promise<Claims | AuthFault>;
}

/** Creates the functions that sign and verify the gateway's tokens. Only HS256 is accepted. @spec JWT claims */
export function createJwts(deps: { keys: SigningKeys; clock: Clock; random: Random }): Jwts {
  const { keys, clock, random } = deps;

  async function verifyWith(key: SigningKeys['sign'], token: string): Promise<Claims | AuthFault> {
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [ALGORITHM],
        clockTolerance: LIMITS.jwtClockToleranceSeconds,
        currentDate: new Date(clock.now()),
        requiredClaims: ['exp'],
      });
      return claimsOf(payload);
    } catch (error) {
      return faultOf(error);
    }
  }

  return {
    async mint({ hostId, namespaceId, typ, ttlSeconds, executionId, sid, roleValues, idPrefix = '' }) {
      const issuedAt = Math.floor(clock.now() / 1000);
      const jti = idPrefix + random.uuid();
      const claims = {
        ...{ hostId, namespaceId, typ },
        ...(executionId && { executionId }),
        ...(sid && { sid }),
        ...(roleValues && { roleValues }),
      };
      const token = await new SignJWT(claims)
        .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
        .setSubject(hostId)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + ttlSeconds)
        .setJti(jti)
        .sign(keys.sign);
      return { token, jti, expiresAt: (issuedAt + ttlSeconds) * 1000 };
    },
    async verify(token) {
      let result: Claims | AuthFault = 'UNKNOWN_TOKEN';
      if (!isCanonicalJwt(token)) return result;
      for (const key of keys.verify) {
        result = await verifyWith(key, token);
        if (result !== 'JWT_SIGNATURE_INVALID') return result;
      }
      return result;
    },
  };
}

function typeOf(hostId: string): TokenType {
  return hostId.startsWith(CONTAINER_HOST_PREFIX) ? 'container' : 'access';
}

function claimsOf(payload: JWTPayload): Claims | AuthFault {
  const claims = Claims.safeParse(payload);
  return claims.success ? claims.data : 'JWT_CLAIMS_INVALID';
}

function faultOf(error: unknown): AuthFault {
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'JWT_SIGNATURE_INVALID';
  if (error instanceof errors.JWTExpired) return 'JWT_EXPIRED';
  if (error instanceof errors.JWTClaimValidationFailed)
    return error.claim === 'nbf' ? 'JWT_NOT_ACTIVE' : 'JWT_CLAIMS_INVALID';
  if (error instanceof errors.JWTInvalid) return 'JWT_CLAIMS_INVALID';
  // All other errors mean that the token is not a JWT, or that its algorithm or header is not supported.
  return 'UNKNOWN_TOKEN';
}
