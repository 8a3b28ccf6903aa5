import { z } from 'zod';
import { EventName, InstanceId, PluginId } from './ids.ts';

/**
 * A recorded delivery as a test case: the exact body and the headers of its event, without secrets and signature. A test
 * signs it anew when it replays the fixture. @spec docs/webhooks.md "Fixtures"
 */
export const WebhookFixture = z.strictObject({
  format: z.literal('svc.webhook-fixture/1'),
  pluginId: PluginId,
  event: EventName,
  instanceId: InstanceId.optional(),
  headers: z.record(z.string(), z.string()),
  bodyEncoding: z.enum(['utf8', 'base64']),
  body: z.string(),
  /** HTTP status that the sender got, which a test can compare with the status of the replay. */
  status: z.number().int().nullable(),
});
export type WebhookFixture = z.infer<typeof WebhookFixture>;
