import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import type { Seal } from '../../../../../kit/security/keys.ts';
import { standardKey } from './new-secret.ts';

/** Maximum number of decrypted secrets in the cache. The cache is cleared when it is full. */
const MAX_CACHED = 10_000;

/** A webhook secret with its precomputed keys. Signature verification reuses the keys for every delivery. */
export interface VerificationKey {
  text: string;
  hmacKey: KeyObject;
  digest: Buffer;
  /** Returns the key for the Standard Webhooks scheme, decoded from `whsec_…`. */
  standardKey(): KeyObject;
}

export interface VerificationKeys {
  current: VerificationKey;
  /** Previous secret during its grace period. Null at other times. */
  previous: VerificationKey | null;
  previousExpiresAt: number | null;
  /** Previous secret after its grace period. The secret is no longer accepted and only serves to explain refusals. */
  lapsed: VerificationKey | null;
  namespaceInUrl: boolean;
}

export function verificationKey(text: string): VerificationKey {
  let decoded: KeyObject | undefined;
  return {
    text,
    hmacKey: createSecretKey(Buffer.from(text)),
    digest: createHash('sha256').update(text).digest(),
    standardKey: () => (decoded ??= createSecretKey(standardKey(text) ?? Buffer.from(text))),
  };
}

/**
 * Decrypts stored secrets and caches the results. The cache key is the encrypted text, which changes with each
 * rotation. Cached secrets are therefore never outdated.
 */
export class SealedKeys {
  readonly #seal: Seal;
  readonly #known = new Map<string, VerificationKey>();

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  open(sealed: string, context: string): VerificationKey {
    let key = this.#known.get(sealed);
    if (!key) {
      key = verificationKey(this.#seal.open(sealed, context));
      if (this.#known.size >= MAX_CACHED) this.#known.clear();
      this.#known.set(sealed, key);
    }
    return key;
  }

  /** Decrypts a previous secret. Returns null if its master key is lost, so that the current secret still works. */
  tryOpen(sealed: string, context: string): VerificationKey | null {
    try {
      return this.open(sealed, context);
    } catch {
      return null;
    }
  }
}
