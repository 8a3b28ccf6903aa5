import { createHash, createSecretKey, type KeyObject } from 'node:crypto';

/** A webhook secret with the keys that schemes derive from it. Verification reuses the keys for every delivery. */
export class VerificationKey {
  readonly text: string;
  /** HMAC key of the text. */
  readonly hmacKey: KeyObject;
  readonly digest: Buffer;
  readonly #derived = new WeakMap<object, { key: KeyObject | null }>();

  constructor(text: string) {
    this.text = text;
    this.hmacKey = createSecretKey(Buffer.from(text));
    this.digest = createHash('sha256').update(text).digest();
  }

  /** Returns the key that a scheme derives from the text. Null means that the text is no key of the scheme. */
  derived(scheme: object, derive: (text: string) => KeyObject | null): KeyObject | null {
    let known = this.#derived.get(scheme);
    if (!known) {
      known = { key: derive(this.text) };
      this.#derived.set(scheme, known);
    }
    return known.key;
  }
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
  return new VerificationKey(text);
}
