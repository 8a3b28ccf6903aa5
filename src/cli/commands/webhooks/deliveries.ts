import { z } from 'zod';
import {
  DeliveryStatus,
  EventName,
  listDeliveries,
  PluginId,
  type WebhookDelivery,
} from '../../../contracts/index.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags } from '../../list-page.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { parseSince } from '../logs/filter.ts';
import { statusText } from './delivery-text.ts';

/** @spec docs/webhooks.md "Records" */
export const deliveries = defineCommand({
  name: 'webhooks deliveries',
  summary: 'List deliveries, including refused ones, newest first',
  example: 'svc webhooks deliveries --status failed --since 1h',
  idField: 'webhookId',
  args: z.object({
    status: z
      .array(DeliveryStatus)
      .default([])
      .describe(`repeatable; one of ${DeliveryStatus.options.join(', ')}`),
    plugin: PluginId.optional().describe('only deliveries to this plugin'),
    event: EventName.optional().describe('only deliveries of this event'),
    since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
    until: z.string().optional().describe('end: like --since'),
    search: z
      .string()
      .optional()
      .describe('text in the body, a header, the outcome, the source or an id; at least 3 characters'),
    limit: z.coerce.number().int().min(1).max(1000).default(50).describe('maximum number; default 50'),
    cursor: pageFlags.cursor,
  }),
  short: { limit: 'n' },
  async run({ status, plugin, event, since, until, search, limit, cursor }, { client, clock }) {
    const filter = {
      ...(status.length > 0 ? { status } : {}),
      ...(plugin ? { pluginId: plugin } : {}),
      ...(event ? { event } : {}),
      ...(since ? { since: parseSince(since, clock.now()) } : {}),
      ...(until ? { until: parseSince(until, clock.now(), '--until') } : {}),
      ...(search ? { search } : {}),
    };
    const items: WebhookDelivery[] = [];
    // The API returns at most 200 deliveries per page.
    let nextCursor: string | null = cursor ?? null;
    do {
      const query = {
        ...filter,
        limit: Math.min(200, limit - items.length),
        ...(nextCursor ? { cursor: nextCursor } : {}),
      };
      const page: ListPage<WebhookDelivery> = await client.call(listDeliveries, { query });
      items.push(...page.items);
      nextCursor = page.nextCursor;
    } while (nextCursor !== null && items.length < limit);
    return ok({ items, nextCursor });
  },
  text({ items, nextCursor }: ListPage<WebhookDelivery>, style) {
    if (items.length === 0) return 'No matching deliveries.';
    const rows = items.map((item) => [
      timeText(item.receivedAt),
      statusText(item.status, style),
      item.pluginId,
      item.instanceId === null ? item.event : `${item.event}/${item.instanceId}`,
      item.durationMs === null ? '-' : formatDuration(item.durationMs),
      item.webhookId,
      (item.reason ?? '').slice(0, 60),
    ]);
    return (
      table(['received', 'status', 'plugin', 'event', 'duration', 'id', 'reason'], rows, style) +
      moreLine(nextCursor, style)
    );
  },
});
