import { timingSafeEqual } from 'node:crypto';
import { type Scheme, type SharedSecretAuth, type SignatureFault, schemeOf } from './schemes.ts';
import { type VerificationKey, type VerificationKeys, verificationKey } from './verification-key.ts';

export type SignatureVerdict =
  | { valid: true; secret: 'current' | 'previous' }
  | { valid: false; fault: SignatureFault; skewSeconds?: number };

/** Key for webhooks without a secret. With this key, a rejection takes as long as the rejection of a wrong secret. */
const DUMMY_KEY: VerificationKey = verificationKey('unprovisioned');

/**
 * Verifies a shared secret, or a signature of the raw body. A previous secret is evaluated even if the current secret
 * matches. The timing therefore reveals only whether a previous secret exists. @spec Webhook declaration:
 * WebhookAuthConfig
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
  const current = matches(scheme, keys?.current ?? DUMMY_KEY, message, digests);
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
  // `some` would stop at the first match and leak the position of the match by timing.
  for (const digest of claimed) found = timingSafeEqual(digest, expected) || found;
  return found;
}

export type { SharedSecretAuth } from './schemes.ts';
