import { z } from 'zod';
import { EventName, PluginId } from '../../../contracts/index.ts';
import { defineCommand, streamed } from '../../define-command.ts';
import { deliveryLine } from './delivery-text.ts';
import { followDeliveries, type StreamedDelivery } from './follow.ts';

/** @spec docs/webhooks.md "Tail" */
export const tail = defineCommand({
  name: 'webhooks tail',
  summary: 'Show deliveries as they come and as they end, until Ctrl-C',
  example: 'svc webhooks tail --plugin github',
  streams: 'always',
  idField: 'webhookId',
  args: z.object({
    plugin: PluginId.optional().describe('those of one plugin'),
    event: EventName.optional().describe('those of one event'),
    cursor: z.string().optional().describe('where to go on; 0 for all that is kept; default: from now on'),
  }),
  async run(args, context) {
    const { ui } = context;
    const show = (delivery: StreamedDelivery): void =>
      ui.record(delivery, (shown) => deliveryLine(shown, ui.out));
    return streamed(await followDeliveries(context, { ...args, take: show, ended: show }));
  },
});
