import { LIMITS } from '../../../../contracts/index.ts';
import { type REPEATED, singleHeader } from '../../../../kit/data/raw-headers.ts';

/** Reason for a failed authentication, logged as the `reasonCode` of a diagnostic event. @spec Authentication 13 */
export type AuthFault =
  | 'MISSING_AUTHORIZATION'
  | 'CSRF_TOKEN_INVALID'
  | 'DUPLICATE_AUTHORIZATION'
  | 'MALFORMED_AUTHORIZATION'
  | 'UNKNOWN_TOKEN'
  | 'JWT_SIGNATURE_INVALID'
  | 'JWT_KEY_UNKNOWN'
  | 'JWT_EXPIRED'
  | 'JWT_NOT_ACTIVE'
  | 'JWT_CLAIMS_INVALID'
  | 'TOKEN_REVOKED';

const SCHEME = 'bearer ';

/**
 * Returns the value of the Authorization header, or REPEATED if the header occurs more than once. Node hides all values
 * except the first. Two servers could therefore read different values of a repeated header.
 */
export function authorizationOf(rawHeaders: readonly string[]): string | undefined | typeof REPEATED {
  return singleHeader(rawHeaders, 'authorization');
}

/** Returns the token without its scheme. Requests with `Bearer` and `bearer` then count for the same rate limit. */
export function tokenText(authorization: string): string {
  return authorization.slice(SCHEME.length);
}

/**
 * Returns whether all parts of a JWT are canonical base64url. Without this check, one token would have several valid
 * encodings.
 */
export function isCanonicalJwt(token: string): boolean {
  return token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part);
}

/**
 * Returns the token of `Bearer <token>`, or undefined if the header is malformed. Exactly one space must follow the
 * scheme. The token can contain spaces.
 */
export function bearerToken(authorization: string): string | undefined {
  if (authorization.length > LIMITS.tokenChars + SCHEME.length) return undefined;
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  const token = authorization.slice(SCHEME.length);
  return token === '' || hasOuterBlank(token) ? undefined : token;
}

/**
 * Returns whether the token starts or ends with a space or tab. Other whitespace is not checked, because the last byte
 * of a UTF-8 letter in Latin-1 header text can look like whitespace.
 */
export function hasOuterBlank(token: string): boolean {
  return /^[ \t]|[ \t]$/.test(token);
}
