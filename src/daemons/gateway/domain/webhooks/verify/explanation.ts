import { createSecretKey, timingSafeEqual } from 'node:crypto';
import { LIMITS } from '../../../../../contracts/index.ts';
import { safeEqual } from '../../../../../kit/security/keys.ts';
import { singleHeader } from '../../raw-headers.ts';
import { type Claim, type SharedSecretAuth, type SignatureFault, schemeOf } from './schemes.ts';
import { type VerificationKey, type VerificationKeys, verificationKey } from './verification-key.ts';

/**
 * Explanation of a failed authentication. Only operators are allowed to see the explanation, because it describes a
 * valid request.
 */
export interface Explanation {
  reason: string;
  hint: string;
  skewSeconds?: number;
}

export interface RefusedDelivery {
  auth: SharedSecretAuth;
  fault: SignatureFault;
  skewSeconds?: number | undefined;
  rawHeaders: readonly string[];
  body: Buffer;
  keys: VerificationKeys | undefined;
  nowMs: number;
}

/**
 * Maximum size in bytes of a body that is serialized again for an explanation. Larger bodies would delay other
 * requests.
 */
const MAX_RESERIALIZED_BYTES = 256 * 1024;
/**
 * Maximum size in bytes of a body that is hashed for an explanation. One unauthenticated request can cause a dozen
 * hashes.
 */
const MAX_HASHED_BYTES = 1024 * 1024;

const PLAIN: Record<Exclude<SignatureFault, 'mismatch' | 'timestamp_outside_tolerance'>, string> = {
  unprovisioned: 'There is no secret: create one with `svc webhooks provision`, or stop the sender.',
  header_missing: 'The sender does not send the authentication header, or a proxy drops it.',
  header_repeated: 'The header was sent more than once: a proxy may add its own.',
  prefix_missing:
    'The header does not start with the declared prefix: compare `prefix` or the provider with what the sender sends.',
  encoding: 'The signature does not have the declared encoding: lower-case hex, or base64 with padding.',
  timestamp_malformed: 'The signed timestamp is missing or not in whole seconds since 1970.',
  validator_refused: "The plugin's validator rejected it; its log lines have this delivery's request id.",
};

/**
 * Explains a failed authentication. A signature mismatch is explained by the first common mistake that matches. Callers
 * must limit the rate, because an explanation computes a dozen HMACs. @spec docs/webhooks.md "Why was it refused?"
 */
export function explainRefusal(refused: RefusedDelivery): Explanation {
  const { auth, fault, skewSeconds, keys } = refused;
  if (fault === 'timestamp_outside_tolerance') return clockExplanation(auth, skewSeconds ?? 0);
  if (!keys || (fault !== 'mismatch' && fault !== 'encoding' && fault !== 'prefix_missing'))
    return { reason: fault, hint: PLAIN[fault as keyof typeof PLAIN] };
  return (
    (auth.type === 'secret'
      ? explainSecret(auth.header, refused, keys)
      : explainSignature(refused, keys)) ?? {
      reason: fault === 'mismatch' ? 'wrong_secret' : fault,
      hint:
        fault === 'mismatch'
          ? 'The signature was made with another secret, or over another body: configure the secret at the sender again.'
          : PLAIN[fault],
    }
  );
}

function clockExplanation(auth: SharedSecretAuth, skewSeconds: number): Explanation {
  const tolerance = auth.type === 'provider' ? auth.toleranceSeconds : LIMITS.webhookToleranceSeconds;
  const direction = skewSeconds > 0 ? 'in the past' : 'in the future';
  return {
    reason: 'clock_skew',
    skewSeconds,
    hint: `The signed time is ${Math.abs(skewSeconds)} s ${direction}; ${tolerance} s are allowed. Check the clocks, or whether an old delivery was sent again.`,
  };
}

function explainSecret(
  header: string,
  { rawHeaders }: RefusedDelivery,
  keys: VerificationKeys,
): Explanation | undefined {
  const sent = singleHeader(rawHeaders, header);
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

type Variant<T> = [reason: string, hint: string, value: T];

function explainSignature(refused: RefusedDelivery, keys: VerificationKeys): Explanation | undefined {
  if (refused.body.length > MAX_HASHED_BYTES) return undefined;
  const scheme = schemeOf(refused.auth);
  const claim = scheme.read(refused.rawHeaders, refused.body, refused.nowMs);
  const claimed = claim.digests.length > 0 ? claim.digests : lenientDigests(refused);
  if (claimed.length === 0) return undefined;
  const matches = (key: VerificationKey, message: Claim['message']): boolean => {
    const expected = scheme.expected(key, message);
    return claimed.some((digest) => timingSafeEqual(digest, expected));
  };
  // The signature is correct, but does not have the declared encoding.
  if (claim.digests.length === 0 && matches(keys.current, claim.message))
    return {
      reason: 'other_encoding',
      hint: 'The signature is correct but encoded differently: hex instead of base64, upper case, or another prefix. Change `encoding` or `prefix` in the declaration.',
    };
  if (keys.lapsed && matches(keys.lapsed, claim.message)) return previousExpired();
  for (const [reason, hint, key] of keyVariants(keys.current))
    if (matches(key, claim.message)) return { reason, hint };
  for (const [reason, hint, body] of bodyVariants(refused.body)) {
    const message = claim.message.map((part) => (part === refused.body ? body : part));
    if (matches(keys.current, message)) return { reason, hint };
  }
  return undefined;
}

function previousExpired(): Explanation {
  return {
    reason: 'previous_secret_expired',
    hint: 'The sender still uses the previous secret, whose 24-hour grace period has ended: configure the current one there.',
  };
}

function keyVariants({ text }: VerificationKey): Variant<VerificationKey>[] {
  const newline =
    'The sender signs with the secret plus a newline: it was pasted or read from a file with a trailing newline.';
  const bare = text.replace(/^whsec_/, '');
  const decoded = Buffer.from(bare, 'base64');
  return [
    ['trailing_newline', newline, verificationKey(`${text}\n`)],
    ['trailing_newline', newline, verificationKey(`${text}\r\n`)],
    ['trailing_newline', newline, verificationKey(` ${text}`)],
    [
      'other_encoding',
      'The sender signs with the text of the secret; the scheme requires its decoded bytes.',
      { ...verificationKey(text), standardKey: () => verificationKey(text).hmacKey },
    ],
    [
      'other_encoding',
      'The sender removes "whsec_" and signs with the rest as text.',
      { ...verificationKey(bare), standardKey: () => verificationKey(bare).hmacKey },
    ],
    ['other_encoding', 'The sender decodes the secret; here it is used as text.', rawKey(decoded)],
    [
      'other_encoding',
      'The sender decodes the secret as hex; here it is used as text.',
      rawKey(Buffer.from(text, 'hex')),
    ],
  ];
}

function rawKey(bytes: Buffer): VerificationKey {
  const key = verificationKey('');
  const hmacKey = createSecretKey(bytes);
  return { ...key, hmacKey, standardKey: () => hmacKey };
}

function bodyVariants(body: Buffer): Variant<Buffer>[] {
  const newline: Variant<Buffer>[] = [
    [
      'body_newline',
      'A trailing newline of the body was added or removed in transit.',
      Buffer.concat([body, Buffer.from('\n')]),
    ],
    [
      'body_newline',
      'A trailing newline of the body was added or removed in transit.',
      Buffer.from(body.toString().trimEnd()),
    ],
  ];
  if (body.length > MAX_RESERIALIZED_BYTES) return newline;
  const hint =
    'The signature covers the same JSON in another formatting: the sender, or a proxy, parses and re-serializes the body. Sign the exact bytes that are sent.';
  try {
    const value: unknown = JSON.parse(body.toString());
    const compact = JSON.stringify(value);
    const spaced = compact && spacedJson(value);
    const written = [compact, JSON.stringify(value, null, 2), JSON.stringify(value, null, 4), spaced];
    return [
      ...newline,
      ...written.map((text): Variant<Buffer> => ['reserialised_json', hint, Buffer.from(text ?? '')]),
    ];
  } catch {
    return newline;
  }
}

/** Serializes JSON with the same spaces as Python's `json.dumps`. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(', ')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, item]) => `${JSON.stringify(name)}: ${spacedJson(item)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

/**
 * Returns all values in the signature headers that decode to 32 bytes from hex or base64. Accepts non-canonical
 * encodings.
 */
function lenientDigests({ auth, rawHeaders }: RefusedDelivery): Buffer[] {
  const names =
    auth.type === 'hmac' ? [auth.header.toLowerCase()] : auth.type === 'provider' ? SIGNATURE_HEADERS : [];
  const found: Buffer[] = [];
  for (const name of names) {
    const sent = singleHeader(rawHeaders, name);
    if (typeof sent !== 'string') continue;
    for (const word of sent.split(/[\s,]+/)) {
      const text = word.replace(/^(?:sha256|sha1|v0|v1|t)=/, '');
      const candidates = [Buffer.from(text, 'hex'), Buffer.from(text, 'base64')];
      found.push(...candidates.filter((digest) => digest.length === 32));
    }
  }
  return found;
}

const SIGNATURE_HEADERS = [
  'x-hub-signature-256',
  'x-shopify-hmac-sha256',
  'x-slack-signature',
  'stripe-signature',
  'webhook-signature',
  'svix-signature',
];
