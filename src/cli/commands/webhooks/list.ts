import { z } from 'zod';
import { listWebhooks, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageOf, pageShort } from '../../list-page.ts';
import { table } from '../../table.ts';

/** @spec Webhook admin API */
export const list = defineCommand({
  name: 'webhooks list',
  summary: 'List declared webhooks and whether they are provisioned or paused',
  example: 'svc webhooks list',
  args: z.object(pageFlags),
  short: pageShort,
  async run(flags, { client }) {
    const reply = await client.call(listWebhooks);
    return ok({ ...reply, ...pageOf(reply.items, flags, ({ pluginId, event }) => `${pluginId}/${event}`) });
  },
  text({ items, nextCursor }: ListPage<ReplyOf<typeof listWebhooks>['items'][number]>, style) {
    if (items.length === 0) return 'No plugin declares a webhook.';
    const rows = items.flatMap((item) => [
      [item.pluginId, item.event, '', item.auth, state(item), item.url],
      ...item.instances.map((instance) => [
        item.pluginId,
        item.event,
        instance.instanceId,
        item.auth,
        state(instance),
        instance.url,
      ]),
    ]);
    const columns = ['plugin', 'event', 'instance', 'auth', 'provisioned', 'url'];
    const notices = items
      .filter(({ unrecorded }) => unrecorded > 0)
      .map(
        ({ pluginId, event, unrecorded }) =>
          `${unrecorded} refused requests to ${pluginId} ${event} in the last day were not recorded, because the limit was exceeded.`,
      );
    return [table(columns, rows, style), ...notices].join('\n') + moreLine(nextCursor, style);

    function state({ provisioned, paused }: { provisioned: boolean; paused: boolean }): string {
      return (
        (provisioned ? style.green('yes') : style.yellow('no')) + (paused ? style.yellow(', paused') : '')
      );
    }
  },
});
