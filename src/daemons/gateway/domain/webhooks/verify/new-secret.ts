import type { SignatureAuth, WebhookAuthConfig } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { ProviderAuth } from '../../../../../webhooks/providers/index.ts';
import { authsOf, publicKeyOf, secretBytes } from '../../../../../webhooks/schemes/index.ts';

/** Length of a generated secret in bytes (256 bits). */
const SECRET_BYTES = 32;
const MIN_SECRET_CHARS = 8;
const MAX_SECRET_CHARS = 1024;
const MAX_KEY_CHARS = 16 * 1024;
/** Length of an encoded secret in bytes. */
const MIN_DECODED_BYTES = 8;
const MAX_DECODED_BYTES = 256;
/** User of generated credentials for HTTP Basic authentication. */
const BASIC_USER = 'svc';

const KEY_FORMATS: Record<NonNullable<SignatureAuth['key']>, string> = {
  pem: 'PEM ("-----BEGIN PUBLIC KEY-----")',
  'spki-base64': 'the base64 of an SPKI structure, without the lines of a PEM file',
  'raw-hex': 'the 32 bytes of the key in hex (64 digits)',
  'raw-base64': 'the 32 bytes of the key in base64 (44 characters)',
};

/**
 * Generates a secret in the format that the sender's tools expect. Throws VALIDATION_ERROR for a scheme with a public
 * key, which only the sender can make.
 */
export function makeSecret(auth: WebhookAuthConfig, random: Random): string {
  const secret = random.secret(SECRET_BYTES);
  const scheme = auth.type === 'custom' ? undefined : authsOf(auth)[0];
  if (scheme?.type === 'basic') return `${BASIC_USER}:${secret}`;
  if (scheme?.type !== 'signature') return secret;
  if (scheme.key !== undefined)
    refuse(`must be the public key of the sender as ${KEY_FORMATS[scheme.key]}: pass it (--secret-stdin)`);
  const { encoding, prefix } = scheme.secret;
  return encoding === 'text' ? secret : prefix + Buffer.from(secret, 'base64url').toString(encoding);
}

/**
 * Validates a secret that a sender generated, and returns it as it is stored. Throws VALIDATION_ERROR for an invalid
 * secret. The error message never contains the secret.
 */
export function checkedSecret(auth: WebhookAuthConfig, given: string): string {
  const schemes = auth.type === 'custom' ? [] : authsOf(auth);
  const hasKey = schemes.some((scheme) => scheme.type === 'signature' && scheme.key !== undefined);
  // A PEM file ends with a newline.
  const secret = hasKey ? given.trim() : given;
  if (secret.trim() !== secret) refuse('must not start or end with whitespace: copy it again');
  const max = hasKey ? MAX_KEY_CHARS : MAX_SECRET_CHARS;
  if (secret.length < MIN_SECRET_CHARS || secret.length > max)
    refuse(`must have ${MIN_SECRET_CHARS} to ${max} characters`);
  const faults = schemes.map((scheme) => faultOf(scheme, secret));
  const fault = faults.find((one) => one !== undefined);
  if (fault !== undefined && !faults.includes(undefined)) refuse(fault);
  return secret;
}

/** Returns what a secret of the scheme must be, unless the text is one. */
function faultOf(scheme: ProviderAuth, secret: string): string | undefined {
  switch (scheme.type) {
    case 'token':
      return /^[\x20-\x7e]+$/.test(secret)
        ? undefined
        : 'must be printable ASCII, since the request contains it as it is';
    case 'basic':
      return /^[^:]+:./s.test(secret) ? undefined : 'must be "<user>:<password>"';
    case 'signature':
      return scheme.key === undefined ? encodingFault(scheme, secret) : keyFault(scheme, secret);
    default:
      return undefined;
  }
}

function encodingFault(scheme: SignatureAuth, secret: string): string | undefined {
  const { encoding, prefix } = scheme.secret;
  if (encoding === 'text') return undefined;
  const bytes = secretBytes(scheme, secret)?.length ?? 0;
  if (bytes >= MIN_DECODED_BYTES && bytes <= MAX_DECODED_BYTES) return undefined;
  return `must be ${prefix === '' ? '' : `"${prefix}" followed by `}${MIN_DECODED_BYTES} to ${MAX_DECODED_BYTES} bytes in ${encoding}, as the sender shows it`;
}

function keyFault(scheme: SignatureAuth, secret: string): string | undefined {
  return publicKeyOf(scheme, secret)
    ? undefined
    : `must be the ${scheme.algorithm} public key of the sender as ${KEY_FORMATS[scheme.key!]}`;
}

function refuse(message: string): never {
  throw new PlatformError('VALIDATION_ERROR', `The secret ${message}.`, {
    details: { issues: [{ path: 'body.secret', message }] },
  });
}
