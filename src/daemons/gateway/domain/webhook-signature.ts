import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { WebhookAuthConfig } from '../../../contracts/index.ts';
import { REPEATED, singleHeader } from './raw-headers.ts';
import { type VerificationKey, type VerificationKeys, verificationKey } from './webhook-secrets.ts';

/** Why a signature was refused: for the operator's record alone, the sender sees the same 401 for each. */
export type SignatureFault =
  | 'unprovisioned'
  | 'header_missing'
  | 'header_repeated'
  | 'prefix_missing'
  | 'encoding'
  | 'mismatch'
  | 'validator_refused';

export type SignatureVerdict =
  | { valid: true; secret: 'current' | 'previous' }
  | { valid: false; fault: SignatureFault };

type SharedSecretAuth = Extract<WebhookAuthConfig, { type: 'secret' | 'hmac' }>;

/** Stands in where there is no secret, so that an unprovisioned webhook takes as long to refuse as a wrong secret. */
const NOBODYS_KEY: VerificationKey = verificationKey('nobody');
const DIGEST_BYTES = 32;

/**
 * Checks a shared secret or an HMAC over the raw body. Current and previous are always both evaluated,
 * over digests of one length. @spec Webhook declaration: WebhookAuthConfig
 */
export function verifySharedSecret(
  auth: SharedSecretAuth,
  rawHeaders: readonly string[],
  body: Buffer,
  keys: VerificationKeys | undefined,
): SignatureVerdict {
  const header = singleHeader(rawHeaders, auth.header);
  const sent = header === undefined || header === REPEATED ? '' : header;
  const claim = auth.type === 'secret' ? secretClaim(sent) : hmacClaim(sent, auth);
  const current = matches(auth, claim.digest, body, keys?.current ?? NOBODYS_KEY);
  const previous = matches(auth, claim.digest, body, keys?.previous ?? NOBODYS_KEY);

  if (header === undefined) return { valid: false, fault: 'header_missing' };
  if (header === REPEATED) return { valid: false, fault: 'header_repeated' };
  if (claim.fault) return { valid: false, fault: claim.fault };
  if (!keys) return { valid: false, fault: 'unprovisioned' };
  if (current) return { valid: true, secret: 'current' };
  if (previous && keys.previous) return { valid: true, secret: 'previous' };
  return { valid: false, fault: 'mismatch' };
}

type Claim = { digest: Buffer; fault?: SignatureFault };

function secretClaim(sent: string): Claim {
  return { digest: createHash('sha256').update(sent).digest() };
}

/** Decodes strictly: one signature has one spelling. */
function hmacClaim(sent: string, { prefix, encoding }: Extract<SharedSecretAuth, { type: 'hmac' }>): Claim {
  const none = Buffer.alloc(DIGEST_BYTES);
  if (!sent.startsWith(prefix)) return { digest: none, fault: 'prefix_missing' };
  const text = sent.slice(prefix.length);
  const digest = Buffer.from(text, encoding);
  if (digest.length !== DIGEST_BYTES || digest.toString(encoding) !== text)
    return { digest: none, fault: 'encoding' };
  return { digest };
}

function matches(auth: SharedSecretAuth, claimed: Buffer, body: Buffer, key: VerificationKey): boolean {
  const expected =
    auth.type === 'secret' ? key.digest : createHmac(auth.algorithm, key.hmacKey).update(body).digest();
  return timingSafeEqual(claimed, expected);
}
