import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import type { Seal } from '../../../../../kit/security/keys.ts';
import { standardKey } from './new-secret.ts';

/** Maximum cached decrypted secrets. The cache is cleared when it is full. */
const MAX_CACHED = 10_000;

/** A secret that is prepared for comparison, so that deliveries need no key setup. */
export interface VerificationKey {
  text: string;
  hmacKey: KeyObject;
  digest: Buffer;
  /** Returns the key for the Standard Webhooks scheme, decoded from `whsec_…`. */
  standardKey(): KeyObject;
}

export interface VerificationKeys {
  current: VerificationKey;
  /** The previous secret, within its grace period. */
  previous: VerificationKey | null;
  previousExpiresAt: number | null;
  /** The previous secret after its grace period. It is no longer accepted, and only explains refusals. */
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
 * Decrypts stored secrets. The cache key is the encrypted text, which changes with each rotation in any process, so
 * that cached secrets are never outdated.
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

  /** Decrypts a previous secret; null if its master key is lost, so that the current secret still works. */
  tryOpen(sealed: string, context: string): VerificationKey | null {
    try {
      return this.open(sealed, context);
    } catch {
      return null;
    }
  }
}
