import { createHmac } from 'node:crypto';
import type { Random } from './random.ts';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** Returns a new secret in the form `whsec_<base64>`. */
export function newWebhookSecret(random: Random): string {
  return PREFIX + Buffer.from(random.secret(SECRET_BYTES), 'base64url').toString('base64');
}

/** Returns the key of a secret `whsec_<base64>`. */
export function webhookKeyOf(secret: string): Buffer {
  return Buffer.from(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret, 'base64');
}

export interface SignedMessage {
  id: string;
  /** Time of the attempt, in epoch ms. Receivers refuse old timestamps. */
  at: number;
  body: string | Uint8Array;
}

/**
 * Returns the headers of a request that is signed as Standard Webhooks specify, as names and values in turn. There is
 * one signature per key. @spec docs/messages.md "Verify"
 */
export function signedHeaders(keys: readonly Buffer[], { id, at, body }: SignedMessage): string[] {
  const timestamp = String(Math.floor(at / 1000));
  const head = `${id}.${timestamp}.`;
  const sign = (key: Buffer): string =>
    `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`;
  const signatures = keys.length === 1 ? sign(keys[0]!) : keys.map(sign).join(' ');
  return ['webhook-id', id, 'webhook-timestamp', timestamp, 'webhook-signature', signatures];
}
