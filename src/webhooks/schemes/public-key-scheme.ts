import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { SignatureAuth } from '../../contracts/index.ts';
import { decode } from './encoding.ts';
import type { Claim, ClaimScheme } from './scheme.ts';
import { SignatureReader } from './signature-reader.ts';
import type { SignedRequest } from './signed-request.ts';
import type { VerificationKey } from './verification-key.ts';

type PublicKeyAlgorithm = Exclude<SignatureAuth['algorithm'], `hmac-${string}`>;

interface Algorithm {
  /** Hash of `crypto.verify`. Ed25519 hashes itself. */
  hash: string | null;
  /** Range of the signature's length in bytes. */
  lengths: readonly [number, number];
  /** Whether a key belongs to the algorithm. */
  accepts(key: KeyObject): boolean;
}

const isRsa = (key: KeyObject) =>
  key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= 1024;
const RSA_LENGTHS = [128, 1024] as const;

const ALGORITHMS: Record<PublicKeyAlgorithm, Algorithm> = {
  ed25519: { hash: null, lengths: [64, 64], accepts: (key) => key.asymmetricKeyType === 'ed25519' },
  'ecdsa-p256-sha256': {
    hash: 'sha256',
    lengths: [8, 72],
    accepts: (key) => key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
  },
  'rsa-sha1': { hash: 'sha1', lengths: RSA_LENGTHS, accepts: isRsa },
  'rsa-sha256': { hash: 'sha256', lengths: RSA_LENGTHS, accepts: isRsa },
};

/** Length of an ECDSA signature in IEEE P1363 form, which is two numbers of 32 bytes. */
const P1363_BYTES = 64;

/** A signature that the sender's public key verifies. The key is provisioned in place of the secret. */
export class PublicKeyScheme implements ClaimScheme {
  readonly kind = 'claim';
  readonly auth: SignatureAuth;
  readonly #algorithm: Algorithm;
  readonly #reader: SignatureReader;

  constructor(auth: SignatureAuth) {
    this.auth = auth;
    this.#algorithm = ALGORITHMS[auth.algorithm as PublicKeyAlgorithm];
    this.#reader = new SignatureReader(auth, this.#algorithm.lengths);
  }

  isUsedBy(request: SignedRequest): boolean {
    return this.#reader.isUsedBy(request);
  }

  read(request: SignedRequest, nowMs: number): Claim {
    return this.#reader.read(request, nowMs);
  }

  timestampText(request: SignedRequest): string | undefined {
    return this.#reader.timestampText(request);
  }

  isKey(key: VerificationKey): boolean {
    return this.#keyOf(key) !== null;
  }

  #keyOf(key: VerificationKey): KeyObject | null {
    return key.derived(this, (text) => publicKeyOf(this.auth, text) ?? null);
  }

  matches(key: VerificationKey, { signatures, message }: Claim): boolean {
    const publicKey = this.#keyOf(key);
    if (!publicKey) return false;
    const bytes = Buffer.concat(message.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
    let found = false;
    for (const signature of signatures) found = this.#verifies(publicKey, bytes, signature) || found;
    return found;
  }

  #verifies(key: KeyObject, message: Buffer, signature: Buffer): boolean {
    const { hash } = this.#algorithm;
    if (verify(hash, message, key, signature)) return true;
    return (
      this.auth.algorithm === 'ecdsa-p256-sha256' &&
      signature.length === P1363_BYTES &&
      verify(hash, message, { key, dsaEncoding: 'ieee-p1363' }, signature)
    );
  }
}

const ED25519_SPKI = Buffer.from('302a300506032b6570032100', 'hex');

/** Returns the public key that a text contains, or undefined if the text is no key of the scheme. */
export function publicKeyOf(auth: SignatureAuth, text: string): KeyObject | undefined {
  try {
    const key = parseKey(auth, text.trim());
    return key && ALGORITHMS[auth.algorithm as PublicKeyAlgorithm].accepts(key) ? key : undefined;
  } catch {
    return undefined;
  }
}

function parseKey({ key: format, algorithm }: SignatureAuth, text: string): KeyObject | undefined {
  if (format === 'pem') {
    // A private key would be accepted too, and must never be stored here.
    return text.includes('PRIVATE KEY') ? undefined : createPublicKey(text);
  }
  const bytes = decode(text, format === 'raw-hex' ? 'hex-any-case' : 'base64');
  if (!bytes) return undefined;
  if (format === 'spki-base64') return createPublicKey({ key: bytes, format: 'der', type: 'spki' });
  if (algorithm !== 'ed25519' || bytes.length !== 32) return undefined;
  return createPublicKey({ key: Buffer.concat([ED25519_SPKI, bytes]), format: 'der', type: 'spki' });
}
