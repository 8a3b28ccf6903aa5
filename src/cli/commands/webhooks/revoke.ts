import { z } from 'zod';
import {
  EventName,
  InstanceId,
  PluginId,
  revokeWebhook,
  revokeWebhookInstance,
} from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec Webhook admin API */
export const revoke = defineCommand({
  name: 'webhooks revoke',
  summary: 'Revoke the secret of a webhook; deliveries then get 401',
  example: 'svc webhooks revoke github push',
  args: z.object({
    plugin: PluginId.describe('plugin id'),
    event: EventName.describe('event declared by the plugin'),
    instance: InstanceId.optional().describe("instance of a 'multi' webhook"),
  }),
  async run({ plugin, event, instance }, { client }) {
    const params = { pluginId: plugin, event };
    return ok(
      instance === undefined
        ? await client.call(revokeWebhook, { params })
        : await client.call(revokeWebhookInstance, { params: { ...params, instanceId: instance } }),
    );
  },
  text: () => 'Revoked. Deliveries now get 401.',
});
