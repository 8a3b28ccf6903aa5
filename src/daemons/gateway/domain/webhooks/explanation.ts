import { createSecretKey, timingSafeEqual } from 'node:crypto';
import { LIMITS } from '../../../../contracts/index.ts';
import { safeEqual } from '../../../../kit/keys.ts';
import { singleHeader } from '../raw-headers.ts';
import { type Claim, type SharedSecretAuth, schemeOf } from './schemes.ts';
import { type VerificationKey, type VerificationKeys, verificationKey } from './secrets.ts';
import type { SignatureFault } from './signature.ts';

/** For the operator alone: it tells what would have been right. */
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

/** Larger bodies are not serialised again: it would hold up others for the sake of an explanation. */
const LARGEST_REWRITTEN = 256 * 1024;
/** Nor are still larger ones hashed a dozen times: a stranger would pay for one of them. */
const LARGEST_HASHED = 1024 * 1024;

const PLAIN: Record<Exclude<SignatureFault, 'mismatch' | 'timestamp_outside_tolerance'>, string> = {
  unprovisioned: 'There is no secret: `svc webhooks provision` makes one, or the sender is to stop.',
  header_missing: 'The sender does not send the header that is to prove it, or a proxy drops it.',
  header_repeated: 'The header came more than once: a proxy adds its own.',
  prefix_missing:
    'The header does not begin as declared: compare `prefix` or the provider with what the sender sends.',
  encoding: 'The signature is not written as declared: lower-case hex, or base64 with its padding.',
  timestamp_malformed: 'The signed timestamp is missing or not in whole seconds since 1970.',
  validator_refused: "The plugin's own validator said no; its log lines have this delivery's request id.",
};

/**
 * Why a signature did not match: tries what goes wrong in practice, and says the first that fits. Costs a dozen HMACs,
 * so callers bound how often. @spec docs/webhooks.md "Why was it refused?"
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
          ? 'The signature was made with another secret, or over another body: give the sender the secret again.'
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
    hint: `The signed time lies ${Math.abs(skewSeconds)} s ${direction}; ${tolerance} s are allowed. Check the clocks, or whether an old delivery was sent again.`,
  };
}

function explainSecret(
  header: string,
  { rawHeaders }: RefusedDelivery,
  keys: VerificationKeys,
): Explanation | undefined {
  const sent = singleHeader(rawHeaders, header);
  if (typeof sent !== 'string') return undefined;
  // In constant time here as well: the answer waits for the explanation.
  const is = (text: string | undefined, claimed = sent): boolean =>
    text !== undefined && text !== '' && safeEqual(text, claimed);
  const { text } = keys.current;
  if (is(keys.lapsed?.text)) return previousExpired();
  if (is(text, sent.trim()) || is(`"${text}"`, sent.trim()))
    return { reason: 'trailing_newline', hint: 'The sender adds blanks or a line end to the secret.' };
  const stripped = sent.replace(/^(?:Bearer|Basic|Token)\s+/i, '');
  if (stripped !== sent && is(text, stripped))
    return {
      reason: 'other_encoding',
      hint: `The header is to be the secret alone, without "${sent.split(' ')[0]!.slice(0, 16)}".`,
    };
  if (is(Buffer.from(text).toString('base64')) || is(Buffer.from(text).toString('hex')))
    return { reason: 'other_encoding', hint: 'The sender encodes the secret; it is to be sent as it is.' };
  return undefined;
}

type Variant<T> = [reason: string, hint: string, value: T];

function explainSignature(refused: RefusedDelivery, keys: VerificationKeys): Explanation | undefined {
  if (refused.body.length > LARGEST_HASHED) return undefined;
  const scheme = schemeOf(refused.auth);
  const claim = scheme.read(refused.rawHeaders, refused.body, refused.nowMs);
  const claimed = claim.digests.length > 0 ? claim.digests : lenientDigests(refused);
  if (claimed.length === 0) return undefined;
  const matches = (key: VerificationKey, message: Claim['message']): boolean => {
    const expected = scheme.expected(key, message);
    return claimed.some((digest) => timingSafeEqual(digest, expected));
  };
  // Right but for its spelling.
  if (claim.digests.length === 0 && matches(keys.current, claim.message))
    return {
      reason: 'other_encoding',
      hint: 'The signature is right but written in another way: hex for base64, capitals, or another prefix. Change `encoding` or `prefix` in the declaration.',
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
    hint: 'The sender still uses the former secret, whose 24 hours are over: give it the current one.',
  };
}

function keyVariants({ text }: VerificationKey): Variant<VerificationKey>[] {
  const newline =
    'The sender signs with the secret and a line end: it was pasted or read from a file with its newline.';
  const bare = text.replace(/^whsec_/, '');
  const decoded = Buffer.from(bare, 'base64');
  return [
    ['trailing_newline', newline, verificationKey(`${text}\n`)],
    ['trailing_newline', newline, verificationKey(`${text}\r\n`)],
    ['trailing_newline', newline, verificationKey(` ${text}`)],
    [
      'other_encoding',
      'The sender signs with the text of the secret; the scheme wants its decoded bytes.',
      { ...verificationKey(text), standardKey: () => verificationKey(text).hmacKey },
    ],
    [
      'other_encoding',
      'The sender leaves out "whsec_" and signs with the rest as text.',
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
      'A line end at the end of the body was added or removed on the way.',
      Buffer.concat([body, Buffer.from('\n')]),
    ],
    [
      'body_newline',
      'A line end at the end of the body was added or removed on the way.',
      Buffer.from(body.toString().trimEnd()),
    ],
  ];
  if (body.length > LARGEST_REWRITTEN) return newline;
  const hint =
    'The signature is over the same JSON written differently: the sender, or something in between, parses the body and writes it again. Sign the bytes that are sent.';
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

/** As Python's `json.dumps` writes it. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(', ')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([name, item]) => `${JSON.stringify(name)}: ${spacedJson(item)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

/** Anything in the signature headers that could be 32 bytes, however it is spelled. */
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
