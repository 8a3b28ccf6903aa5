import { timingSafeEqual } from 'node:crypto';
import { type Scheme, type SharedSecretAuth, schemeOf } from './schemes.ts';
import { type VerificationKey, type VerificationKeys, verificationKey } from './secrets.ts';

/** Why a signature was refused: for the operator's record alone, the sender sees the same 401 for each. */
export type SignatureFault =
  | 'unprovisioned'
  | 'header_missing'
  | 'header_repeated'
  | 'prefix_missing'
  | 'encoding'
  | 'timestamp_malformed'
  | 'timestamp_outside_tolerance'
  | 'mismatch'
  | 'validator_refused';

export type SignatureVerdict =
  | { valid: true; secret: 'current' | 'previous' }
  | { valid: false; fault: SignatureFault; skewSeconds?: number };

/** Stands in where there is no secret, so that an unprovisioned webhook takes as long to refuse as a wrong secret. */
const NOBODYS_KEY: VerificationKey = verificationKey('nobody');

/**
 * Checks a shared secret or a signature over the raw body. Where there is a previous secret, both are evaluated whatever
 * the first said, over digests of one length. Where there is none, nothing stands in for it: the time then tells that no
 * rotation is under way, which helps nobody to guess 256 bits, and a second HMAC would cost every delivery more than all
 * other checks together. @spec Webhook declaration: WebhookAuthConfig
 */
export function verifySharedSecret(
  auth: SharedSecretAuth,
  rawHeaders: readonly string[],
  body: Buffer,
  keys: VerificationKeys | undefined,
  nowMs: number,
): SignatureVerdict {
  const scheme = schemeOf(auth);
  const { digests, message, fault, skewSeconds } = scheme.read(rawHeaders, body, nowMs);
  const current = matches(scheme, keys?.current ?? NOBODYS_KEY, message, digests);
  const previous = keys?.previous ? matches(scheme, keys.previous, message, digests) : false;

  if (fault) return { valid: false, fault, ...(skewSeconds === undefined ? {} : { skewSeconds }) };
  if (!keys) return { valid: false, fault: 'unprovisioned' };
  if (current) return { valid: true, secret: 'current' };
  if (previous) return { valid: true, secret: 'previous' };
  return { valid: false, fault: 'mismatch' };
}

function matches(
  scheme: Scheme,
  key: VerificationKey,
  message: ReadonlyArray<string | Buffer>,
  claimed: readonly Buffer[],
): boolean {
  const expected = scheme.expected(key, message);
  let found = false;
  // Not `some`: how far it got must not show in the time.
  for (const digest of claimed) found = timingSafeEqual(digest, expected) || found;
  return found;
}

export type { SharedSecretAuth } from './schemes.ts';
