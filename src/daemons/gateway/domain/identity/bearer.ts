import { LIMITS } from '../../../../contracts/index.ts';
import { type REPEATED, singleHeader } from '../raw-headers.ts';

/** Reason for a failed authentication, logged as the `reasonCode` of a diagnostic event. @spec Authentication 13 */
export type AuthFault =
  | 'MISSING_AUTHORIZATION'
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
 * Returns the value of the Authorization header. A repeated header is an error, because two servers could read
 * different values: Node returns the first value and hides the others.
 */
export function authorizationOf(rawHeaders: readonly string[]): string | undefined | typeof REPEATED {
  return singleHeader(rawHeaders, 'authorization');
}

/**
 * Returns the token without its scheme. Different spellings of the scheme, such as `bearer`, thus count for the same
 * limit.
 */
export function tokenText(authorization: string): string {
  return authorization.slice(SCHEME.length);
}

/**
 * Returns whether all parts of a JWT are canonical base64url. Without this check, one token would have several valid
 * spellings.
 */
export function isCanonicalJwt(token: string): boolean {
  return token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part);
}

/**
 * Returns the token of `Bearer <token>`; undefined if malformed. Exactly one space follows the scheme. Spaces within
 * the token belong to it.
 */
export function bearerToken(authorization: string): string | undefined {
  if (authorization.length > LIMITS.tokenChars + SCHEME.length) return undefined;
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  const token = authorization.slice(SCHEME.length);
  return token === '' || hasOuterBlank(token) ? undefined : token;
}

/**
 * Returns whether the token starts or ends with a space or tab. Other whitespace is not checked, because in Latin-1
 * header text the last byte of a UTF-8 letter may look like whitespace.
 */
export function hasOuterBlank(token: string): boolean {
  return /^[ \t]|[ \t]$/.test(token);
}
