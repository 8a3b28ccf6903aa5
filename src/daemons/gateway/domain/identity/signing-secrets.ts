import { createSecretKey, type KeyObject } from 'node:crypto';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { KeyMaterial } from '../../../../kit/security/keys.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';

const MIN_BYTES = 32;

/** JWT secret that is used if no secret is set. The value is public, so signatures with this secret prove nothing. */
const INSECURE_DEFAULT = 'svc-insecure-development-secret-that-everybody-knows';

/** JWT keys. New tokens are signed with `sign`. Tokens are valid if they are signed with any key of `verify`. */
export interface SigningKeys {
  sign: KeyObject;
  verify: readonly KeyObject[];
}

/**
 * Returns the JWT keys. If `GATEWAY_JWT_SECRET` is missing or shorter than 32 bytes, production throws
 * VALIDATION_ERROR, and other profiles log a warning. If no secret exists at all, an insecure default is used. @spec
 * Authentication 4
 */
export function signingKeys(keys: KeyMaterial, profile: string, logger: Logger): SigningKeys {
  const problem = problemOf(keys);
  if (problem && profile === 'production') throw refusedInProduction(problem);
  if (problem) {
    logger.diagnostic({
      domain: 'auth',
      event: 'auth.insecure_secret',
      level: 'warn',
      reasonCode: problem.reasonCode,
      message: `${problem.message} ${problem.risk} Set it before production: "svc init --production" writes one to .env.`,
      outcome: 'degraded',
    });
  }
  const secrets = [keys.jwtSecret || INSECURE_DEFAULT, keys.previousJwtSecret];
  const verify = secrets
    .filter((secret) => !!secret)
    .map((secret) => createSecretKey(Buffer.from(secret!, 'utf8')));
  return { sign: verify[0]!, verify };
}

interface Problem {
  reasonCode: 'JWT_SECRET_MISSING' | 'JWT_SECRET_GENERATED' | 'JWT_SECRET_WEAK';
  message: string;
  /** Consequence of the insecure setting. In development, the consequence is logged as a warning. */
  risk: string;
}

function problemOf({ jwtSecret, isJwtSecretGenerated }: KeyMaterial): Problem | undefined {
  if (!jwtSecret) {
    return {
      reasonCode: 'JWT_SECRET_MISSING',
      message: 'GATEWAY_JWT_SECRET is not set.',
      risk: 'Tokens are signed with a publicly known default.',
    };
  }
  if (isJwtSecretGenerated) {
    return {
      reasonCode: 'JWT_SECRET_GENERATED',
      message: 'GATEWAY_JWT_SECRET is not set.',
      risk: 'Tokens are signed with the secret that was generated in .svc/keys.json.',
    };
  }
  if (Buffer.byteLength(jwtSecret) >= MIN_BYTES) return undefined;
  return {
    reasonCode: 'JWT_SECRET_WEAK',
    message: `GATEWAY_JWT_SECRET is shorter than ${MIN_BYTES} bytes.`,
    risk: 'It can be guessed, and then signs any token.',
  };
}

function refusedInProduction({ message, reasonCode }: Problem): PlatformError {
  const generated =
    reasonCode === 'JWT_SECRET_GENERATED' ? ' The one in .svc/keys.json is for development only.' : '';
  return new PlatformError(
    'VALIDATION_ERROR',
    `${message}${generated} Production requires at least ${MIN_BYTES} bytes: run "svc init --production", which writes one to .env, or set GATEWAY_JWT_SECRET to the output of \`openssl rand -base64 48\`.`,
    { details: { variable: 'GATEWAY_JWT_SECRET', minBytes: MIN_BYTES } },
  );
}
