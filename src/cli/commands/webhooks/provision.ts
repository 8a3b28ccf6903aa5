import { z } from 'zod';
import { EventName, InstanceId, PluginId, provisionWebhook } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec Webhook admin API */
export const provision = defineCommand({
  name: 'webhooks provision',
  summary: 'Create or rotate the secret of a declared webhook',
  example: 'svc webhooks provision github push',
  args: z.object({
    plugin: PluginId.describe("the plugin's id"),
    event: EventName.describe('the event it declares'),
    instance: InstanceId.optional().describe("which instance of a 'multi' webhook"),
    namespaceInUrl: z
      .boolean()
      .default(false)
      .describe('put the namespace into the URL, for senders that cannot set headers'),
  }),
  async run({ plugin, event, instance, namespaceInUrl }, { client, ui }) {
    const reply = await client.call(provisionWebhook, {
      body: {
        pluginId: plugin,
        event,
        ...(instance === undefined ? {} : { instanceId: instance }),
        ...(namespaceInUrl ? { namespaceInUrl } : {}),
      },
    });
    ui.warn('Copy the secret now; it is shown once.');
    if (reply.rotated) ui.note('The former secret works for 24 more hours.');
    return ok(reply);
  },
});
