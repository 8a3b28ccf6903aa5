import { LIMITS } from '../../../../contracts/index.ts';
import { type REPEATED, singleHeader } from '../raw-headers.ts';

/** Why a call was not let in; the `reasonCode` of its diagnostic. @spec Authentication 13 */
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
 * The value of the one Authorization header. Node keeps the first of several and hides the rest, and two parties that
 * read different ones is how a request is smuggled past a check: so several are a fault of their own.
 */
export function authorizationOf(rawHeaders: readonly string[]): string | undefined | typeof REPEATED {
  return singleHeader(rawHeaders, 'authorization');
}

/**
 * The token as one text, whatever the case of its scheme: what is counted by token must not be had anew by spelling
 * `bearer` in another way.
 */
export function tokenText(authorization: string): string {
  return authorization.slice(SCHEME.length);
}

/** Whether each part is the one way to write its bytes: else one signature could be sent in several spellings. */
export function isCanonicalJwt(token: string): boolean {
  return token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part);
}

/**
 * The token of `Bearer <token>`; undefined when malformed. Exactly one space ends the scheme, so that whitespace before
 * a token is seen (behind it HTTP itself drops it), and inside it belongs to the token.
 */
export function bearerToken(authorization: string): string | undefined {
  if (authorization.length > LIMITS.tokenChars + SCHEME.length) return undefined;
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  const token = authorization.slice(SCHEME.length);
  return token === '' || hasOuterBlank(token) ? undefined : token;
}

/** The blanks of HTTP alone: the last byte of a letter in UTF-8 may be what Unicode has as a blank. */
export function hasOuterBlank(token: string): boolean {
  return /^[ \t]|[ \t]$/.test(token);
}
