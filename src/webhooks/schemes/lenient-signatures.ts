import type { SignatureAuth } from '../../contracts/index.ts';
import { placeOf } from './place.ts';
import type { SignedRequest } from './signed-request.ts';

/** Longest text that is searched for signatures. */
const MAX_SEARCHED_CHARS = 4096;
const MAX_FOUND = 16;
const MIN_SIGNATURE_BYTES = 20;

/**
 * Returns all values at the signature's places that decode from hex or base64. Accepts non-canonical encodings. Only for
 * the explanation of refusals.
 */
export function lenientSignatures({ signature }: SignatureAuth, request: SignedRequest): Buffer[] {
  return [signature, ...(signature.alternatives ?? [])]
    .map((place) => placeOf(place).read(request).text ?? '')
    .join(' ')
    .slice(0, MAX_SEARCHED_CHARS)
    .split(/[\s,;]+/)
    .map((word) => word.replace(/^[\w.-]{1,32}=(?!=*$)/, ''))
    .flatMap((text) => [Buffer.from(text, 'hex'), Buffer.from(text, 'base64')])
    .filter(({ length }) => length >= MIN_SIGNATURE_BYTES)
    .slice(0, MAX_FOUND);
}
