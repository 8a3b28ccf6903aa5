import type { Clock } from '../../../../../kit/time/clock.ts';
import type { DeliveryRecord } from '../../../../../store/ports/index.ts';
import { verificationOf } from '../../../../../webhooks/schemes/index.ts';
import { sentHeaders } from '../receive/request-head.ts';
import type { WebhookTargets } from '../receive/targets.ts';
import { draftOf } from './draft.ts';
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
 * expire. Supports schemes whose secret can sign and whose signature is in headers. Does not support a header with the
 * secret itself, and a plugin's validator. @spec docs/webhooks.md "Listen"
 */
export function createResigning(targets: WebhookTargets, secrets: WebhookSecrets, clock: Clock): Resign {
  return async (record) => {
    const auth = targets.find(record.pluginId, record.event)?.webhook.auth;
    if (!auth || auth.type === 'custom') return null;
    if (record.body === null || NOT_AUTHENTIC.has(record.status)) return null;
    const [scheme] = verificationOf(auth).schemes;
    // The secret itself is never sent to a local program.
    if (!scheme.sign || scheme.isSecretSent) return null;
    const keys = await secrets.find(record);
    if (!keys) return null;
    const { buffer, byteOffset, byteLength } = record.body;
    const draft = draftOf({
      rawHeaders: sentHeaders(record.headers),
      body: Buffer.from(buffer, byteOffset, byteLength),
      nowMs: clock.now(),
      id: `msg_${record.webhookId}`,
    });
    try {
      const { headers, query, fields } = await scheme.sign(keys.current, draft);
      return query || fields ? null : headers;
    } catch {
      return null;
    }
  };
}
