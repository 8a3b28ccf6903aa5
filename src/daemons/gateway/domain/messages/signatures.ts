import { createHmac } from 'node:crypto';
import type { Random } from '../../../../kit/security/random.ts';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

export function newSecret(random: Random): string {
  return PREFIX + Buffer.from(random.secret(SECRET_BYTES), 'base64url').toString('base64');
}

/** Returns the key of a secret `whsec_<base64>`. */
export function keyOfSecret(secret: string): Buffer {
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}

/** Signs a request as Standard Webhooks specify. One signature per key, separated by spaces. */
export function signatureOf(
  keys: readonly Buffer[],
  id: string,
  timestamp: string,
  body: Uint8Array,
): string {
  const head = `${id}.${timestamp}.`;
  const sign = (key: Buffer): string =>
    `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`;
  return keys.length === 1 ? sign(keys[0]!) : keys.map(sign).join(' ');
}
