import { z } from 'zod';
import { listWebhooks, type ReplyOf, type WebhookProtection } from '../../../contracts/index.ts';
import { unprotected } from '../../../webhooks/schemes/index.ts';
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
      [item.pluginId, item.event, '', item.provider ?? item.auth, state(item), open(item), item.url],
      ...item.instances.map((instance) => [
        item.pluginId,
        item.event,
        instance.instanceId,
        item.provider ?? item.auth,
        state(instance),
        open(item),
        instance.url,
      ]),
    ]);
    const columns = ['plugin', 'event', 'instance', 'auth', 'provisioned', 'not protected', 'url'];
    const notices = items
      .filter(({ unrecorded }) => unrecorded > 0)
      .map(
        ({ pluginId, event, unrecorded }) =>
          `${unrecorded} refused requests to ${pluginId} ${event} in the last day were not recorded, because the limit was exceeded.`,
      );
    return [table(columns, rows, style), ...notices].join('\n') + moreLine(nextCursor, style);

    function open({ protects }: { protects?: WebhookProtection | undefined }): string {
      return protects ? unprotected(protects).join(', ') || '-' : '?';
    }

    function state({ provisioned, paused }: { provisioned: boolean; paused: boolean }): string {
      return (
        (provisioned ? style.green('yes') : style.yellow('no')) + (paused ? style.yellow(', paused') : '')
      );
    }
  },
});
