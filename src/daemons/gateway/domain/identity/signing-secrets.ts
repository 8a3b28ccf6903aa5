import { createSecretKey, type KeyObject } from 'node:crypto';
import { PlatformError } from '../../../../kit/errors.ts';
import type { KeyMaterial } from '../../../../kit/keys.ts';
import type { Logger } from '../../../../kit/logger.ts';

const MIN_BYTES = 32;

/** Known to everybody who reads this file: what it signs proves nothing. */
const INSECURE_DEFAULT = 'svc-insecure-development-secret-that-everybody-knows';

/** The first key signs; all of them verify. */
export interface SigningKeys {
  sign: KeyObject;
  verify: readonly KeyObject[];
}

/**
 * The JWT keys. Without `GATEWAY_JWT_SECRET` development warns and goes on with a known default; production refuses
 * that, and a secret under 32 bytes, which a graphics card can guess from one token: VALIDATION_ERROR, as for any setting
 * that will not do. @spec Authentication 4
 */
export function signingKeys(keys: KeyMaterial, profile: string, logger: Logger): SigningKeys {
  const problem = problemOf(keys.jwtSecret);
  if (problem && profile === 'production') {
    throw new PlatformError(
      'VALIDATION_ERROR',
      `${problem} Production needs one of at least ${MIN_BYTES} bytes: set GATEWAY_JWT_SECRET, for example to the output of \`openssl rand -base64 48\`.`,
      { details: { variable: 'GATEWAY_JWT_SECRET', minBytes: MIN_BYTES } },
    );
  }
  if (problem) {
    logger.diagnostic({
      domain: 'auth',
      event: 'auth.insecure_secret',
      level: 'warn',
      reasonCode: keys.jwtSecret ? 'JWT_SECRET_WEAK' : 'JWT_SECRET_MISSING',
      message: `${problem} Fit for development only: whoever knows it can sign tokens.`,
      outcome: 'degraded',
    });
  }
  const secrets = [keys.jwtSecret || INSECURE_DEFAULT, keys.previousJwtSecret];
  const verify = secrets
    .filter((secret) => !!secret)
    .map((secret) => createSecretKey(Buffer.from(secret!, 'utf8')));
  return { sign: verify[0]!, verify };
}

function problemOf(secret: string | null): string | undefined {
  if (!secret) return 'GATEWAY_JWT_SECRET is not set.';
  return Buffer.byteLength(secret) < MIN_BYTES
    ? `GATEWAY_JWT_SECRET is shorter than ${MIN_BYTES} bytes.`
    : undefined;
}
