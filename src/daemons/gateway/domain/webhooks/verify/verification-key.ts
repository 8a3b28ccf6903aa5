import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import type { Seal } from '../../../../../kit/security/keys.ts';
import { standardKey } from './new-secret.ts';

/** Maximum cached decrypted secrets; then the cache is cleared. */
const MAX_CACHED = 10_000;

/** A secret prepared for comparison: hashing and key setup are done once, not per delivery. */
export interface VerificationKey {
  text: string;
  hmacKey: KeyObject;
  digest: Buffer;
  /** The key as Standard Webhooks libraries read it: decoded from `whsec_…`. */
  standardKey(): KeyObject;
}

export interface VerificationKeys {
  current: VerificationKey;
  /** The previous secret during its grace period. */
  previous: VerificationKey | null;
  previousExpiresAt: number | null;
  /** The previous secret after its grace period: not accepted, only used to explain refusals. */
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
 * Decrypts stored secrets. Caches by encrypted text: a rotation in any process changes the stored text, so
 * nothing stale is used.
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

  /** Returns null for a secret whose master key is lost: the current secret must work without it. */
  tryOpen(sealed: string, context: string): VerificationKey | null {
    try {
      return this.open(sealed, context);
    } catch {
      return null;
    }
  }
}
