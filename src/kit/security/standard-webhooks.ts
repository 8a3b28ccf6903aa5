import { createHmac } from 'node:crypto';
import type { Random } from './random.ts';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

export interface SignedMessage {
  id: string;
  /** Time of the attempt, in epoch ms. Receivers refuse old timestamps. */
  at: number;
  body: string;
}

/** Returns a new secret in the form `whsec_<base64>`. */
export function newWebhookSecret(random: Random): string {
  return PREFIX + Buffer.from(random.secret(SECRET_BYTES), 'base64url').toString('base64');
}

/**
 * Returns the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks, with one signature
 * for each secret. @spec docs/alerts.md
 */
export function standardWebhookHeaders(
  secrets: readonly string[],
  { id, at, body }: SignedMessage,
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const timestamp = String(Math.floor(at / 1000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret, 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
