import type { JWTPayload } from 'jose';
import {
  type Caller,
  HostId,
  LIMITS,
  NamespaceId,
  OAUTH_HOST_PREFIX,
  type OAuthIssuer,
} from '../../contracts/index.ts';
import type { Clock } from '../../kit/clock.ts';
import { PlatformError } from '../../kit/errors.ts';
import type { Logger } from '../../kit/logger.ts';
import { createIssuerKeys } from './issuer-keys.ts';

/** Whom a token of the issuer stands for: host id `oauth:<subject>`. */
export interface OAuthBearer extends Caller {
  /** Epoch ms from which on it is refused. */
  expiresAt: number;
}

/** What is wrong with a token; the `reasonCode` of its diagnostic. */
export type OAuthFault =
  | 'UNKNOWN_TOKEN'
  | 'JWT_SIGNATURE_INVALID'
  | 'JWT_KEY_UNKNOWN'
  | 'JWT_EXPIRED'
  | 'JWT_NOT_ACTIVE'
  | 'JWT_CLAIMS_INVALID';

/** A token that is not accepted; the message says why. */
export class OAuthRefusal extends PlatformError {
  readonly fault: OAuthFault;

  constructor(fault: OAuthFault, why: string, cause?: unknown) {
    super('UNAUTHORIZED', `The token is not accepted: ${why}.`, {
      headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      ...(cause === undefined ? {} : { cause }),
    });
    this.fault = fault;
  }
}

/** Throws OAuthRefusal, or UPSTREAM_UNAVAILABLE while the issuer's keys are not known. */
export type VerifyOAuth = (token: string) => Promise<OAuthBearer>;

export interface OAuthVerifierDeps {
  clock: Clock;
  logger: Logger;
}

/** Both have a public key, so that a public key can never be taken for a shared secret. */
const ALGORITHMS = ['RS256', 'ES256'];

/**
 * Verifies access tokens of one configured issuer by its published keys. Only a token that names the issuer and one of
 * the two algorithms is worth asking the issuer for keys; that it says so proves nothing, and everything is checked again.
 * @spec Plugin routes 8; docs/plugins.md "Routes"
 */
export function createOAuthVerifier(issuer: OAuthIssuer, deps: OAuthVerifierDeps): VerifyOAuth {
  // jose is loaded by services that need it.
  let loaded: ReturnType<typeof load> | undefined;
  return async (token) => {
    if (token.length > LIMITS.tokenChars) throw new OAuthRefusal('UNKNOWN_TOKEN', 'it is too long');
    loaded ??= load(issuer, deps);
    return (await loaded)(token);
  };
}

async function load({ issuer, audience, jwksUri, namespaceClaim }: OAuthIssuer, deps: OAuthVerifierDeps) {
  const { decodeJwt, decodeProtectedHeader, errors, jwtVerify } = await import('jose');
  const keys = await createIssuerKeys({ jwksUri, ...deps });

  function requireIssuer(token: string): void {
    try {
      const { alg } = decodeProtectedHeader(token);
      if (ALGORITHMS.includes(alg ?? '') && decodeJwt(token).iss === issuer) return;
    } catch (error) {
      throw new OAuthRefusal('UNKNOWN_TOKEN', 'it is no JWT', error);
    }
    throw new OAuthRefusal('UNKNOWN_TOKEN', `it is no ${ALGORITHMS.join(' or ')} token of ${issuer}`);
  }

  function refusal(error: unknown): PlatformError {
    if (error instanceof PlatformError) return error;
    const why = error instanceof Error ? error.message : 'it cannot be read';
    return new OAuthRefusal(faultOf(error), why, error);
  }
  function faultOf(error: unknown): OAuthFault {
    if (error instanceof errors.JWSSignatureVerificationFailed) return 'JWT_SIGNATURE_INVALID';
    if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
      return 'JWT_KEY_UNKNOWN';
    if (error instanceof errors.JWTExpired) return 'JWT_EXPIRED';
    if (error instanceof errors.JWTClaimValidationFailed)
      return error.claim === 'nbf' ? 'JWT_NOT_ACTIVE' : 'JWT_CLAIMS_INVALID';
    return error instanceof errors.JWTInvalid ? 'JWT_CLAIMS_INVALID' : 'UNKNOWN_TOKEN';
  }

  return async (token: string): Promise<OAuthBearer> => {
    requireIssuer(token);
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: LIMITS.jwtClockToleranceSeconds,
        currentDate: new Date(deps.clock.now()),
        requiredClaims: ['exp', 'sub'],
      });
      return bearerOf(payload, namespaceClaim);
    } catch (error) {
      throw refusal(error);
    }
  };
}

function bearerOf(payload: JWTPayload, namespaceClaim: string): OAuthBearer {
  const claim = Object.hasOwn(payload, namespaceClaim) ? payload[namespaceClaim] : undefined;
  const namespaceId = NamespaceId.safeParse(claim);
  if (!namespaceId.success)
    throw new OAuthRefusal('JWT_CLAIMS_INVALID', `its claim "${namespaceClaim}" names no namespace`);
  const { sub } = payload;
  const hostId = HostId.safeParse(
    typeof sub === 'string' && sub !== '' ? OAUTH_HOST_PREFIX + sub : undefined,
  );
  if (!hostId.success)
    throw new OAuthRefusal('JWT_CLAIMS_INVALID', 'its subject is no text that fits in a header');
  const expiresAt = (payload.exp! + LIMITS.jwtClockToleranceSeconds) * 1000;
  return { hostId: hostId.data, namespaceId: namespaceId.data, expiresAt };
}
