import type { WebhookAuthConfig } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { Random } from '../../../../kit/random.ts';

/** 256 bits. */
const SECRET_BYTES = 32;
const STANDARD_PREFIX = 'whsec_';

/** A secret of our making, in the form that the sender's own tools take. */
export function makeSecret(auth: WebhookAuthConfig, random: Random): string {
  const secret = random.secret(SECRET_BYTES);
  if (!isStandard(auth)) return secret;
  // Their libraries decode the key: standard base64, of 24 to 64 bytes.
  return STANDARD_PREFIX + Buffer.from(secret, 'base64url').toString('base64');
}

/** A secret that the provider made. Throws VALIDATION_ERROR that says what is wrong with it, never the secret itself. */
export function checkGivenSecret(auth: WebhookAuthConfig, secret: string): void {
  if (secret.trim() !== secret) refuse('must not begin or end with blanks or line ends: copy it again');
  if (secret.length < 8 || secret.length > 1024) refuse('must have 8 to 1024 characters');
  if (auth.type === 'secret' && !/^[\x20-\x7e]+$/.test(secret))
    refuse('must be visible ASCII: it is sent as a header');
  if (isStandard(auth) && !standardKey(secret))
    refuse('must be "whsec_" and then the base64 of 24 to 64 bytes, as the sender shows it');
}

/** The key inside a standard-webhooks secret; undefined when the text is none. */
export function standardKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(STANDARD_PREFIX) ? secret.slice(STANDARD_PREFIX.length) : secret;
  const key = Buffer.from(text, 'base64');
  return key.length >= 24 && key.length <= 64 && key.toString('base64') === text ? key : undefined;
}

function isStandard(auth: WebhookAuthConfig): boolean {
  return auth.type === 'provider' && auth.provider === 'standard-webhooks';
}

function refuse(message: string): never {
  throw new PlatformError('VALIDATION_ERROR', `The secret ${message}.`, {
    details: { issues: [{ path: 'body.secret', message }] },
  });
}
