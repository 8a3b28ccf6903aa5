import { createSecretKey, type KeyObject } from 'node:crypto';
import {
  HmacScheme,
  lenientSignatures,
  type Message,
  PublicKeyScheme,
  type Scheme,
  type VerificationKey,
  type VerificationKeys,
} from '../../../../../webhooks/schemes/index.ts';
import { bodyVariants } from './body-variants.ts';
import { HINTS } from './refusal-hints.ts';
import type { Explanation, RefusedDelivery } from './refused-delivery.ts';
import { urlVariants } from './url-variants.ts';

type SignedScheme = HmacScheme | PublicKeyScheme;

/**
 * Maximum size in bytes of a body that is hashed for an explanation. One unauthenticated request can cause a dozen
 * hashes.
 */
const MAX_HASHED_BYTES = 1024 * 1024;

/** Returns the first common mistake that explains a signature, or undefined. */
export function explainSignature(
  scheme: SignedScheme,
  refused: RefusedDelivery,
  keys: VerificationKeys,
): Explanation | undefined {
  const { request, nowMs } = refused;
  if (!scheme.isKey(keys.current)) return { reason: 'key_format', hint: HINTS.key_format };
  if (request.body.length > MAX_HASHED_BYTES) return undefined;
  const claim = scheme.read(request, nowMs);
  const signatures = claim.signatures.length > 0 ? claim.signatures : lenientSignatures(scheme.auth, request);
  if (signatures.length === 0) return undefined;
  const isBy = (key: VerificationKey, message: Message) => scheme.matches(key, { signatures, message });
  // The signature is correct, but does not have the declared encoding.
  if (claim.signatures.length === 0 && isBy(keys.current, claim.message))
    return {
      reason: 'other_encoding',
      hint: 'The signature is correct but encoded differently: hex instead of base64, upper case, or another prefix. Change `encoding` or `prefix` in the declaration.',
    };
  if (keys.lapsed && isBy(keys.lapsed, claim.message)) return previousExpired();
  if (scheme instanceof HmacScheme)
    for (const [reason, hint, key] of keyVariants(keys.current))
      if (scheme.matchesKey(key, signatures, claim.message)) return { reason, hint };
  for (const [reason, hint, body] of bodyVariants(request.body)) {
    const message = claim.message.map((part) => (part === request.body ? body : part));
    if (isBy(keys.current, message)) return { reason, hint };
  }
  if (!/\{(?:url|path|query)\}/.test(scheme.auth.signed)) return undefined;
  for (const { url, target } of urlVariants(refused)) {
    const { method, rawHeaders, body, source } = request;
    const variant = { method, url, target, rawHeaders, body, source, fields: () => request.fields() };
    if (isBy(keys.current, scheme.read(variant, nowMs).message))
      return {
        reason: 'url_mismatch',
        hint: `The sender signed the URL ${url.split('?', 1)[0]}, and the gateway checked ${request.url.split('?', 1)[0]}. Set gateway.publicUrl to the URL that the sender calls, with its protocol, port and path; check also the trailing slash and the query at the sender.`,
      };
  }
  return undefined;
}

export function previousExpired(): Explanation {
  return {
    reason: 'previous_secret_expired',
    hint: 'The sender still uses the previous secret, whose 24-hour grace period has ended: configure the current one there.',
  };
}

/** Skew above which the cause is the unit of the timestamp and no clock, in seconds. */
const UNIT_SKEW_SECONDS = 10 * 365 * 86_400;

export function clockExplanation(scheme: Scheme, { skewSeconds = 0 }: RefusedDelivery): Explanation {
  const isSigned = scheme instanceof HmacScheme || scheme instanceof PublicKeyScheme;
  const timestamp = isSigned ? scheme.auth.timestamp : undefined;
  if (timestamp?.unit === 'ms' && skewSeconds > UNIT_SKEW_SECONDS)
    return { reason: 'timestamp_unit', skewSeconds, hint: unitHint('seconds', 's') };
  const direction = skewSeconds > 0 ? 'in the past' : 'in the future';
  return {
    reason: 'clock_skew',
    skewSeconds,
    hint: `The signed time is ${Math.abs(skewSeconds)} s ${direction}; ${timestamp?.toleranceSeconds} s are allowed. Check the clocks, or whether an old delivery was sent again.`,
  };
}

/** Explains a timestamp of another unit than the declared one. */
export function unitExplanation(scheme: SignedScheme, { request }: RefusedDelivery): Explanation | undefined {
  const text = scheme.timestampText(request);
  const unit = scheme.auth.timestamp?.unit;
  if (text === undefined || unit === undefined) return undefined;
  if (unit !== 'iso' && /^\d{4}-\d\d-\d\dT/.test(text)) return explained('an ISO date', 'iso');
  if (unit !== 'ms' && /^\d{13}$/.test(text)) return explained('milliseconds', 'ms');
  if (unit === 'iso' && /^\d{10}$/.test(text)) return explained('seconds', 's');
  return undefined;
}

const explained = (sent: string, unit: string): Explanation => ({
  reason: 'timestamp_unit',
  hint: unitHint(sent, unit),
});

function unitHint(sent: string, unit: string): string {
  return `The sender sends the time in another unit (${sent}): declare "timestamp": {"unit": "${unit}"}.`;
}

function keyVariants({ text }: VerificationKey): Array<[reason: string, hint: string, key: KeyObject]> {
  const newline =
    'The sender signs with the secret plus a newline: it was pasted or read from a file with a trailing newline.';
  const bare = text.replace(/^whsec_/, '');
  const key = (bytes: string | Buffer) => createSecretKey(Buffer.from(bytes));
  return [
    ['trailing_newline', newline, key(`${text}\n`)],
    ['trailing_newline', newline, key(`${text}\r\n`)],
    ['trailing_newline', newline, key(` ${text}`)],
    [
      'other_encoding',
      'The sender signs with the text of the secret; the scheme requires its decoded bytes.',
      key(text),
    ],
    ['other_encoding', 'The sender removes "whsec_" and signs with the rest as text.', key(bare)],
    [
      'other_encoding',
      'The sender decodes the secret; here it is used as text.',
      key(Buffer.from(bare, 'base64')),
    ],
    [
      'other_encoding',
      'The sender decodes the secret as hex; here it is used as text.',
      key(Buffer.from(text, 'hex')),
    ],
  ];
}
