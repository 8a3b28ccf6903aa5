import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { SignatureAuth } from '../../contracts/index.ts';
import { decode } from './encoding.ts';
import type { Claim, ClaimScheme, Draft, Signed } from './scheme.ts';
import { signDraft } from './sign-draft.ts';
import { SignatureReader } from './signature-reader.ts';
import type { SignedRequest } from './signed-request.ts';
import type { Message } from './template.ts';
import type { VerificationKey } from './verification-key.ts';

const DIGEST_BYTES: Readonly<Record<string, number>> = { sha1: 20, sha256: 32, sha384: 48, sha512: 64 };

/** An HMAC with the secret as its key. */
export class HmacScheme implements ClaimScheme {
  readonly kind = 'claim';
  readonly auth: SignatureAuth;
  readonly #hash: string;
  readonly #reader: SignatureReader;
  readonly #isText: boolean;

  constructor(auth: SignatureAuth) {
    this.auth = auth;
    this.#hash = auth.algorithm.slice('hmac-'.length);
    const bytes = DIGEST_BYTES[this.#hash]!;
    this.#reader = new SignatureReader(auth, [bytes, bytes]);
    this.#isText = auth.secret.encoding === 'text' && auth.secret.prefix === '';
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

  /** Any text is a key. */
  isKey(): boolean {
    return true;
  }

  matches(key: VerificationKey, { signatures, message }: Claim): boolean {
    return this.matchesKey(this.#keyOf(key), signatures, message);
  }

  /** Compares with a given HMAC key, for the explanation of refusals. */
  matchesKey(key: KeyObject, signatures: readonly Buffer[], message: Message): boolean {
    const expected = this.#digest(key, message);
    let found = false;
    // `some` would stop at the first match and leak the position of the match by timing.
    for (const signature of signatures)
      found = (signature.length === expected.length && timingSafeEqual(signature, expected)) || found;
    return found;
  }

  sign(key: VerificationKey, draft: Draft): Signed {
    return signDraft(this.auth, draft, (message) => this.#digest(this.#keyOf(key), message));
  }

  #digest(key: KeyObject, message: Message): Buffer {
    const digest = createHmac(this.#hash, key);
    for (const part of message) digest.update(part);
    return digest.digest();
  }

  #keyOf(key: VerificationKey): KeyObject {
    if (this.#isText) return key.hmacKey;
    // A text that is no key of the scheme was stored before the declaration changed.
    return key.derived(this, (text) => createSecretKey(secretBytes(this.auth, text) ?? Buffer.from(text)))!;
  }
}

/** Returns the bytes of a secret's text, or undefined if the text does not have the declared encoding. */
export function secretBytes(
  { secret: { encoding, prefix } }: SignatureAuth,
  text: string,
): Buffer | undefined {
  const bare = prefix !== '' && text.startsWith(prefix) ? text.slice(prefix.length) : text;
  return encoding === 'text'
    ? Buffer.from(bare)
    : decode(bare, encoding === 'hex' ? 'hex-any-case' : 'base64');
}
