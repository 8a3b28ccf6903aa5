import { LIMITS } from '../../../../contracts/index.ts';
import { type REPEATED, singleHeader } from '../raw-headers.ts';

/** Why authentication failed; the `reasonCode` of the diagnostic. @spec Authentication 13 */
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
 * The value of the only Authorization header. Repeated headers are an error: if two parties read different
 * ones, a request could bypass a check (Node keeps the first and hides the others).
 */
export function authorizationOf(rawHeaders: readonly string[]): string | undefined | typeof REPEATED {
  return singleHeader(rawHeaders, 'authorization');
}

/**
 * The token in one spelling, whatever the case of its scheme, so that per-token limits cannot be evaded by
 * varying `bearer`.
 */
export function tokenText(authorization: string): string {
  return authorization.slice(SCHEME.length);
}

/** Whether each part is canonical base64url: otherwise one token could be sent in several spellings. */
export function isCanonicalJwt(token: string): boolean {
  return token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part);
}

/**
 * The token of `Bearer <token>`; undefined when malformed. Exactly one space separates the scheme, so leading
 * blanks are rejected; inner blanks belong to the token.
 */
export function bearerToken(authorization: string): string | undefined {
  if (authorization.length > LIMITS.tokenChars + SCHEME.length) return undefined;
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  const token = authorization.slice(SCHEME.length);
  return token === '' || hasOuterBlank(token) ? undefined : token;
}

/** Only HTTP's blanks: the last UTF-8 byte of a letter may equal a Unicode blank. */
export function hasOuterBlank(token: string): boolean {
  return /^[ \t]|[ \t]$/.test(token);
}
