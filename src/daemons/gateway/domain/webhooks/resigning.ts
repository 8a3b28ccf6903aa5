import type { Clock } from '../../../../kit/clock.ts';
import type { DeliveryRecord } from '../../../../store/ports/index.ts';
import { schemeOf } from './schemes.ts';
import type { WebhookSecrets } from './secrets.ts';
import type { WebhookTargets } from './targets.ts';

/**
 * Headers that prove a delivery to a program that `svc webhooks listen` forwards to; null where there can be none.
 */
export type Resign = (record: DeliveryRecord) => Promise<Record<string, string> | null>;

/** What never was authentic must not become so by our hand. */
const NOT_AUTHENTIC = new Set(['refused', 'challenge', 'duplicate']);

/**
 * Signs a recorded delivery anew, with the endpoint's current secret and the time of now: records mask the signature that
 * came, and its timestamp would have run out. Whoever may ask for it may have any payload signed (`svc webhooks send`).
 * Never where the header is the secret itself, which nobody is shown twice, nor for a plugin's own validator.
 * @spec docs/webhooks.md "Listen"
 */
export function createResigning(targets: WebhookTargets, secrets: WebhookSecrets, clock: Clock): Resign {
  return async (record) => {
    const auth = targets.find(record.pluginId, record.event)?.webhook.auth;
    if (!auth || auth.type === 'custom' || auth.type === 'secret') return null;
    if (record.body === null || NOT_AUTHENTIC.has(record.status)) return null;
    const keys = await secrets.find(record);
    if (!keys) return null;
    const { buffer, byteOffset, byteLength } = record.body;
    const body = Buffer.from(buffer, byteOffset, byteLength);
    return schemeOf(auth).sign(keys.current, body, { nowMs: clock.now(), id: `msg_${record.webhookId}` });
  };
}
