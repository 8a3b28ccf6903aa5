import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestPlace } from '../../contracts/index.ts';
import { isMissing, type Place, placeOf } from './place.ts';
import type { Claim, ClaimScheme, Signed } from './scheme.ts';
import { put } from './sign-draft.ts';
import type { SignedRequest } from './signed-request.ts';
import type { VerificationKey } from './verification-key.ts';

const NO_MESSAGE = [] as const;

/** A request that contains the secret itself. Compares digests, because texts of different length cannot be compared in constant time. */
export class TokenScheme implements ClaimScheme {
  readonly kind = 'claim';
  readonly isSecretSent = true;
  readonly at: RequestPlace;
  readonly prefix: string;
  readonly #place: Place;

  constructor(at: RequestPlace, prefix = '') {
    this.at = at;
    this.prefix = prefix;
    this.#place = placeOf(at);
  }

  isUsedBy(request: SignedRequest): boolean {
    return !isMissing(this.#place.read(request).fault);
  }

  read(request: SignedRequest): Claim {
    const sent = this.#place.read(request);
    const hasPrefix = sent.text?.startsWith(this.prefix) ?? false;
    const fault = sent.fault ?? (hasPrefix ? undefined : 'prefix_missing');
    const token = hasPrefix ? sent.text!.slice(this.prefix.length) : '';
    return { signatures: [sha256(token)], message: NO_MESSAGE, fault };
  }

  matches(key: VerificationKey, { signatures }: Claim): boolean {
    return timingSafeEqual(signatures[0]!, key.digest);
  }

  sign(key: VerificationKey): Signed {
    const signed: Signed = { headers: {} };
    put(signed, this.at, this.prefix + key.text);
    return signed;
  }
}

/** HTTP Basic authentication. The secret is `<user>:<password>`. */
export class BasicScheme implements ClaimScheme {
  readonly kind = 'claim';
  readonly isSecretSent = true;
  readonly #place = placeOf({ header: 'authorization' });

  isUsedBy(request: SignedRequest): boolean {
    return !isMissing(this.#place.read(request).fault);
  }

  read(request: SignedRequest): Claim {
    const sent = this.#place.read(request);
    if (sent.text === undefined) return { signatures: [sha256('')], message: NO_MESSAGE, fault: sent.fault };
    const [, encoded] = /^basic +([^ ]+)$/i.exec(sent.text) ?? [];
    if (encoded === undefined)
      return { signatures: [sha256('')], message: NO_MESSAGE, fault: 'prefix_missing' };
    const bytes = Buffer.from(encoded, 'base64');
    const fault = bytes.toString('base64') === encoded ? undefined : 'encoding';
    return { signatures: [sha256(bytes)], message: NO_MESSAGE, fault };
  }

  matches(key: VerificationKey, { signatures }: Claim): boolean {
    return timingSafeEqual(signatures[0]!, key.digest);
  }

  sign(key: VerificationKey): Signed {
    return { headers: { authorization: `Basic ${Buffer.from(key.text).toString('base64')}` } };
  }
}

function sha256(bytes: string | Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}
