import { createHash, createHmac, type KeyObject } from 'node:crypto';
import { LIMITS, type WebhookAuthConfig } from '../../../../../contracts/index.ts';
import { REPEATED, singleHeader } from '../../raw-headers.ts';
import type { VerificationKey } from './verification-key.ts';

/** Types of `auth` that the gateway verifies without plugin code. */
export type SharedSecretAuth = Exclude<WebhookAuthConfig, { type: 'custom' }>;

/** Reason for rejecting a signature, for the operator's record only. Senders always get the same 401. */
export type SignatureFault =
  | 'unprovisioned'
  | 'header_missing'
  | 'header_repeated'
  | 'prefix_missing'
  | 'encoding'
  | 'timestamp_malformed'
  | 'timestamp_outside_tolerance'
  | 'mismatch'
  | 'validator_refused';

/** Signatures that a request contains. A request with a `fault` is invalid. */
export interface Claim {
  /** Decoded signatures of 32 bytes each. Some senders send several signatures during a secret rotation. */
  digests: readonly Buffer[];
  /** Parts of the signed message, in order. */
  message: ReadonlyArray<string | Buffer>;
  fault?: SignatureFault;
  /** Age of the signed timestamp in seconds. Negative if the timestamp is in the future. */
  skewSeconds?: number;
}

export interface Scheme {
  read(rawHeaders: readonly string[], body: Buffer, nowMs: number): Claim;
  /** Returns the expected signature of 32 bytes. */
  expected(key: VerificationKey, message: Claim['message']): Buffer;
  /** Returns the signature headers that a sender with this secret would send. */
  sign(key: VerificationKey, body: Buffer, at: { nowMs: number; id: string }): Record<string, string>;
}

const DIGEST_BYTES = 32;
/** Maximum number of signatures per header. Each signature costs a comparison. */
const MAX_SIGNATURES = 16;

const schemes = new WeakMap<SharedSecretAuth, Scheme>();

/**
 * Returns the signature scheme of an `auth` declaration. Schemes are cached. @spec Webhook declaration:
 * WebhookAuthConfig; docs/webhooks.md "Providers"
 */
export function schemeOf(auth: SharedSecretAuth): Scheme {
  let scheme = schemes.get(auth);
  if (!scheme) {
    scheme = createScheme(auth);
    schemes.set(auth, scheme);
  }
  return scheme;
}

function createScheme(auth: SharedSecretAuth): Scheme {
  if (auth.type === 'secret') return secretScheme(auth.header);
  if (auth.type === 'hmac') return bodyScheme(auth);
  if (auth.type !== 'provider') throw new Error(`The type ${auth.type} is not supported.`);
  const { provider, toleranceSeconds = LIMITS.webhookToleranceSeconds } = auth;
  switch (provider) {
    case 'github':
      return bodyScheme({ header: 'x-hub-signature-256', prefix: 'sha256=', encoding: 'hex' });
    case 'shopify':
      return bodyScheme({ header: 'x-shopify-hmac-sha256', prefix: '', encoding: 'base64' });
    case 'slack':
      return slackScheme(toleranceSeconds);
    case 'stripe':
      return stripeScheme(toleranceSeconds);
    case 'standard-webhooks':
      return standardScheme(toleranceSeconds);
    default:
      throw new Error(`The provider ${provider} is not supported.`);
  }
}

/** Returns the scheme whose header contains the secret itself. */
function secretScheme(header: string): Scheme {
  return {
    read(rawHeaders) {
      const sent = read(rawHeaders, header);
      const digests = [
        createHash('sha256')
          .update(sent.text ?? '')
          .digest(),
      ];
      return { digests, message: [], ...faultOf(sent) };
    },
    expected: (key) => key.digest,
    sign: (key) => ({ [header.toLowerCase()]: key.text }),
  };
}

interface BodyHmac {
  header: string;
  prefix: string;
  encoding: 'hex' | 'base64';
}

/** Returns the scheme with an HMAC of the body in one header, as used by GitHub and Shopify. */
function bodyScheme({ header, prefix, encoding }: BodyHmac): Scheme {
  return {
    read(rawHeaders, body) {
      const sent = read(rawHeaders, header);
      if (sent.text === undefined) return { digests: [], message: [body], fault: sent.fault };
      if (!sent.text.startsWith(prefix)) return { digests: [], message: [body], fault: 'prefix_missing' };
      const digest = decode(sent.text.slice(prefix.length), encoding);
      return digest
        ? { digests: [digest], message: [body] }
        : { digests: [], message: [body], fault: 'encoding' };
    },
    expected: (key, message) => hmac(key.hmacKey, message),
    sign: (key, body) => ({
      [header.toLowerCase()]: prefix + hmac(key.hmacKey, [body]).toString(encoding),
    }),
  };
}

/** Returns Slack's scheme. The header is `v0=<hex>`, an HMAC over `v0:<timestamp>:<body>`. */
function slackScheme(toleranceSeconds: number): Scheme {
  return {
    read(rawHeaders, body, nowMs) {
      const timestamp = read(rawHeaders, 'x-slack-request-timestamp');
      const sent = read(rawHeaders, 'x-slack-signature');
      const message = [`v0:${timestamp.text ?? ''}:`, body];
      if (sent.text === undefined) return { digests: [], message, fault: sent.fault };
      if (!sent.text.startsWith('v0=')) return { digests: [], message, fault: 'prefix_missing' };
      const digest = decode(sent.text.slice(3), 'hex');
      if (!digest) return { digests: [], message, fault: 'encoding' };
      return { digests: [digest], message, ...ageOf(timestamp.text, nowMs, toleranceSeconds) };
    },
    expected: (key, message) => hmac(key.hmacKey, message),
    sign(key, body, { nowMs }) {
      const timestamp = secondsText(nowMs);
      const digest = hmac(key.hmacKey, [`v0:${timestamp}:`, body]);
      return {
        'x-slack-request-timestamp': timestamp,
        'x-slack-signature': `v0=${digest.toString('hex')}`,
      };
    },
  };
}

/**
 * Returns Stripe's scheme. The header is `t=<timestamp>,v1=<hex>[,v1=<hex>]…`, with HMACs over `<timestamp>.<body>`.
 * Versions other than `v1` are ignored.
 */
function stripeScheme(toleranceSeconds: number): Scheme {
  return {
    read(rawHeaders, body, nowMs) {
      const sent = read(rawHeaders, 'stripe-signature');
      if (sent.text === undefined) return { digests: [], message: [body], fault: sent.fault };
      const fields = sent.text.split(',').map((field) => field.trim());
      const timestamps = valuesOf(fields, 't=');
      // A header with two timestamps is rejected, because the signed timestamp is ambiguous.
      const timestamp = timestamps.length === 1 ? timestamps[0] : undefined;
      const message = [`${timestamp ?? ''}.`, body];
      const found = decodeAll(valuesOf(fields, 'v1='), 'hex');
      if (!Array.isArray(found)) return { digests: [], message, ...found };
      return { digests: found, message, ...ageOf(timestamp, nowMs, toleranceSeconds) };
    },
    expected: (key, message) => hmac(key.hmacKey, message),
    sign(key, body, { nowMs }) {
      const timestamp = secondsText(nowMs);
      const digest = hmac(key.hmacKey, [`${timestamp}.`, body]);
      return { 'stripe-signature': `t=${timestamp},v1=${digest.toString('hex')}` };
    },
  };
}

/**
 * Returns the Standard Webhooks scheme, which Svix uses with `svix-` headers. The signature header contains base64
 * HMACs over `<id>.<timestamp>.<body>`. The key is the decoded secret.
 */
function standardScheme(toleranceSeconds: number): Scheme {
  return {
    read(rawHeaders, body, nowMs) {
      const own = read(rawHeaders, 'webhook-signature');
      const family = own.fault === 'header_missing' ? 'svix-' : 'webhook-';
      const sent = family === 'webhook-' ? own : read(rawHeaders, 'svix-signature');
      const id = read(rawHeaders, `${family}id`);
      const timestamp = read(rawHeaders, `${family}timestamp`);
      const message = [`${id.text ?? ''}.${timestamp.text ?? ''}.`, body];
      if (sent.text === undefined) return { digests: [], message, fault: sent.fault };
      if (!id.text) return { digests: [], message, fault: id.fault ?? 'header_missing' };
      const found = decodeAll(valuesOf(sent.text.split(' '), 'v1,'), 'base64');
      if (!Array.isArray(found)) return { digests: [], message, ...found };
      return { digests: found, message, ...ageOf(timestamp.text, nowMs, toleranceSeconds) };
    },
    expected: (key, message) => hmac(key.standardKey(), message),
    sign(key, body, { nowMs, id }) {
      const timestamp = secondsText(nowMs);
      const digest = hmac(key.standardKey(), [`${id}.${timestamp}.`, body]);
      return {
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${digest.toString('base64')}`,
      };
    },
  };
}

type Sent = { text: string; fault?: undefined } | { text?: undefined; fault: SignatureFault };

function read(rawHeaders: readonly string[], name: string): Sent {
  const value = singleHeader(rawHeaders, name);
  if (value === undefined) return { fault: 'header_missing' };
  return value === REPEATED ? { fault: 'header_repeated' } : { text: value };
}

function faultOf({ fault }: Sent): { fault?: SignatureFault } {
  return fault ? { fault } : {};
}

function valuesOf(fields: readonly string[], prefix: string): string[] {
  return fields.filter((field) => field.startsWith(prefix)).map((field) => field.slice(prefix.length));
}

/**
 * Decodes signatures. Returns a fault if `texts` is empty, contains too many signatures or contains a malformed
 * signature.
 */
function decodeAll(
  texts: readonly string[],
  encoding: 'hex' | 'base64',
): Buffer[] | { fault: SignatureFault } {
  if (texts.length === 0) return { fault: 'prefix_missing' };
  if (texts.length > MAX_SIGNATURES) return { fault: 'encoding' };
  const digests: Buffer[] = [];
  for (const text of texts) {
    const digest = decode(text, encoding);
    if (!digest) return { fault: 'encoding' };
    digests.push(digest);
  }
  return digests;
}

/** Decodes a digest. Returns undefined unless the text is the canonical encoding of 32 bytes. */
function decode(text: string, encoding: 'hex' | 'base64'): Buffer | undefined {
  const digest = Buffer.from(text, encoding);
  return digest.length === DIGEST_BYTES && digest.toString(encoding) === text ? digest : undefined;
}

/**
 * Returns the age of a timestamp in seconds. Returns a fault for a malformed timestamp, or if the difference to the
 * current time exceeds the tolerance. The timestamp must be whole epoch seconds without sign, spaces or leading zeros.
 */
function ageOf(
  text: string | undefined,
  nowMs: number,
  toleranceSeconds: number,
): Pick<Claim, 'fault' | 'skewSeconds'> {
  if (text === undefined || !/^[1-9]\d{0,11}$/.test(text)) return { fault: 'timestamp_malformed' };
  const skewSeconds = Math.floor(nowMs / 1000) - Number(text);
  return Math.abs(skewSeconds) <= toleranceSeconds
    ? { skewSeconds }
    : { skewSeconds, fault: 'timestamp_outside_tolerance' };
}

function hmac(key: KeyObject, message: Claim['message']): Buffer {
  const digest = createHmac('sha256', key);
  for (const part of message) digest.update(part);
  return digest.digest();
}

const secondsText = (nowMs: number): string => String(Math.floor(nowMs / 1000));
