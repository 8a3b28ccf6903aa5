import type { WebhookAuthConfig } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';

/** Length of a generated secret in bytes (256 bits). */
const SECRET_BYTES = 32;
const STANDARD_PREFIX = 'whsec_';

/** Generates a secret in the format that the sender's tools expect. */
export function makeSecret(auth: WebhookAuthConfig, random: Random): string {
  const secret = random.secret(SECRET_BYTES);
  if (!isStandard(auth)) return secret;
  // Standard Webhooks libraries expect standard base64 of 24 to 64 bytes.
  return STANDARD_PREFIX + Buffer.from(secret, 'base64url').toString('base64');
}

/**
 * Validates a secret that a provider generated. Throws VALIDATION_ERROR for an invalid secret. The error message never
 * contains the secret.
 */
export function checkGivenSecret(auth: WebhookAuthConfig, secret: string): void {
  if (secret.trim() !== secret) refuse('must not start or end with whitespace: copy it again');
  if (secret.length < 8 || secret.length > 1024) refuse('must have 8 to 1024 characters');
  if (auth.type === 'secret' && !/^[\x20-\x7e]+$/.test(secret))
    refuse('must be printable ASCII, since it is sent as a header');
  if (isStandard(auth) && !standardKey(secret))
    refuse('must be "whsec_" followed by 16 to 64 bytes in base64, as the sender shows it');
}

/** Returns the key of a Standard Webhooks secret, or undefined if the text is not such a secret. */
export function standardKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(STANDARD_PREFIX) ? secret.slice(STANDARD_PREFIX.length) : secret;
  const key = Buffer.from(text, 'base64');
  return key.length >= 16 && key.length <= 64 && key.toString('base64') === text ? key : undefined;
}

function isStandard(auth: WebhookAuthConfig): boolean {
  return auth.type === 'provider' && (auth.provider === 'standard-webhooks' || auth.provider === 'svix');
}

function refuse(message: string): never {
  throw new PlatformError('VALIDATION_ERROR', `The secret ${message}.`, {
    details: { issues: [{ path: 'body.secret', message }] },
  });
}
