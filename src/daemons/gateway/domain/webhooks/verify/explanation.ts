import { singleHeader } from '../../../../../kit/data/raw-headers.ts';
import { safeEqual } from '../../../../../kit/security/keys.ts';
import {
  HmacScheme,
  PublicKeyScheme,
  TokenScheme,
  type VerificationKeys,
  verificationOf,
} from '../../../../../webhooks/schemes/index.ts';
import { clockExplanation, explainSignature, previousExpired, unitExplanation } from './explain-signature.ts';
import { HINTS, WRONG_KEY, WRONG_SECRET } from './refusal-hints.ts';
import type { Explanation, RefusedDelivery } from './refused-delivery.ts';

/**
 * Explains a failed authentication. A signature mismatch is explained by the first common mistake that matches. Callers
 * must limit the rate, because an explanation computes a dozen signatures. @spec docs/webhooks.md "Why was it refused?"
 */
export function explainRefusal(refused: RefusedDelivery): Explanation {
  const { auth, fault, request, keys } = refused;
  const scheme = verificationOf(auth).schemeFor(request);
  const isSigned = scheme instanceof HmacScheme || scheme instanceof PublicKeyScheme;
  if (fault === 'timestamp_outside_tolerance') return clockExplanation(scheme, refused);
  if (fault === 'timestamp_malformed' && isSigned)
    return unitExplanation(scheme, refused) ?? { reason: fault, hint: HINTS[fault] };
  if (!keys || (fault !== 'mismatch' && fault !== 'encoding' && fault !== 'prefix_missing'))
    return { reason: fault, hint: fault === 'mismatch' ? WRONG_SECRET : HINTS[fault] };
  const cause = isSigned
    ? explainSignature(scheme, refused, keys)
    : scheme instanceof TokenScheme
      ? explainSecret(scheme, refused, keys)
      : undefined;
  if (cause) return cause;
  if (fault !== 'mismatch') return { reason: fault, hint: HINTS[fault] };
  return scheme instanceof PublicKeyScheme
    ? { reason: 'wrong_key', hint: WRONG_KEY }
    : { reason: 'wrong_secret', hint: WRONG_SECRET };
}

function explainSecret(
  { at: { header } }: TokenScheme,
  { request }: RefusedDelivery,
  keys: VerificationKeys,
): Explanation | undefined {
  const sent = header === undefined ? undefined : singleHeader(request.rawHeaders, header);
  if (typeof sent !== 'string') return undefined;
  // Compares in constant time. The response waits for the explanation, so a variable duration could leak the secret.
  const is = (text: string | undefined, claimed = sent): boolean =>
    text !== undefined && text !== '' && safeEqual(text, claimed);
  const { text } = keys.current;
  if (is(keys.lapsed?.text)) return previousExpired();
  if (is(text, sent.trim()) || is(`"${text}"`, sent.trim()))
    return { reason: 'trailing_newline', hint: 'The sender adds whitespace or a line break to the secret.' };
  const stripped = sent.replace(/^(?:Bearer|Basic|Token)\s+/i, '');
  if (stripped !== sent && is(text, stripped))
    return {
      reason: 'other_encoding',
      hint: `The header must be the secret alone, without "${sent.split(' ')[0]!.slice(0, 16)}".`,
    };
  if (is(Buffer.from(text).toString('base64')) || is(Buffer.from(text).toString('hex')))
    return { reason: 'other_encoding', hint: 'The sender encodes the secret; it must be sent unencoded.' };
  return undefined;
}
