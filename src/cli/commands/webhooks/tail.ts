import { z } from 'zod';
import { EventName, PluginId } from '../../../contracts/index.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { deliveryLine } from './delivery-text.ts';
import { followDeliveries, type StreamedDelivery } from './follow-deliveries.ts';

/** @spec docs/webhooks.md "Tail" */
export const tail = defineCommand({
  name: 'webhooks tail',
  summary: 'Follow deliveries and their outcomes until Ctrl-C',
  example: 'svc webhooks tail --plugin github',
  streams: 'always',
  idField: 'webhookId',
  args: z.object({
    plugin: PluginId.optional().describe('only deliveries to this plugin'),
    event: EventName.optional().describe('only deliveries of this event'),
    cursor: z
      .string()
      .optional()
      .describe('cursor to resume from; 0 for all stored deliveries; default: new ones only'),
  }),
  async run(args, context) {
    const { ui } = context;
    const show = (delivery: StreamedDelivery): void =>
      ui.record(delivery, (shown) => deliveryLine(shown, ui.out));
    return streamed(await followDeliveries(context, { ...args, take: show, ended: show }));
  },
});
