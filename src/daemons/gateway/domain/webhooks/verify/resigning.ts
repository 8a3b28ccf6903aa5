import type { Clock } from '../../../../../kit/time/clock.ts';
import type { DeliveryRecord } from '../../../../../store/ports/index.ts';
import type { WebhookTargets } from '../receive/targets.ts';
import { schemeOf } from './schemes.ts';
import type { WebhookSecrets } from './secrets.ts';

/**
 * Returns signature headers for a delivery that `svc webhooks listen` forwards to a local program. Returns null if the
 * delivery cannot be signed.
 */
export type Resign = (record: DeliveryRecord) => Promise<Record<string, string> | null>;

/** Statuses of deliveries whose sender might be unauthenticated. Such deliveries must not be signed. */
const NOT_AUTHENTIC = new Set(['refused', 'challenge', 'duplicate']);

/**
 * Creates a function that signs recorded deliveries again, because records mask signatures and signed timestamps
 * expire. Does not support webhooks with a secret header or a plugin's validator. @spec docs/webhooks.md "Listen"
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
