import type { Seal } from '../../../../../kit/security/keys.ts';
import { type VerificationKey, verificationKey } from '../../../../../webhooks/schemes/index.ts';

export type { VerificationKey, VerificationKeys } from '../../../../../webhooks/schemes/index.ts';

/** Maximum number of decrypted secrets in the cache. The cache is cleared when it is full. */
const MAX_CACHED = 10_000;

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
