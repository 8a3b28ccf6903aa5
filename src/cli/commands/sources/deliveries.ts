import { z } from 'zod';
import {
  DeliveryStatus,
  listDeliveries,
  SOURCES_PLUGIN_ID,
  type WebhookDelivery,
} from '../../../contracts/index.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags } from '../../list-page.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { parseSince } from '../logs/filter.ts';
import { statusText } from '../webhooks/delivery-text.ts';
import { nameArg } from './source-args.ts';

/** @spec docs/sources.md */
export const deliveries = defineCommand({
  name: 'sources deliveries',
  summary: 'List deliveries of sources and to their destinations, newest first',
  example: 'svc sources deliveries payments --status dead',
  idField: 'webhookId',
  args: z.object({
    name: nameArg.optional(),
    status: DeliveryStatus.optional().describe(`one of ${DeliveryStatus.options.join(', ')}`),
    since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
    limit: z.coerce.number().int().min(1).max(200).default(50).describe('maximum number; default 50'),
    cursor: pageFlags.cursor,
  }),
  positionals: ['name'],
  short: { limit: 'n' },
  async run({ name, status, since, limit, cursor }, { client, clock }) {
    const query = {
      pluginId: SOURCES_PLUGIN_ID,
      limit,
      ...(name ? { event: name } : {}),
      ...(status ? { status } : {}),
      ...(since ? { since: parseSince(since, clock.now()) } : {}),
      ...(cursor ? { cursor } : {}),
    };
    return ok(await client.call(listDeliveries, { query }));
  },
  text({ items, nextCursor }: ListPage<WebhookDelivery>, style) {
    if (items.length === 0) return 'No matching deliveries.';
    const rows = items.map((item) => [
      timeText(item.receivedAt),
      statusText(item.status, style),
      item.event,
      item.instanceId ?? '(received)',
      item.durationMs === null ? '-' : formatDuration(item.durationMs),
      item.webhookId,
      item.replayOf ?? '',
      (item.reason ?? '').slice(0, 60),
    ]);
    const columns = ['received', 'status', 'source', 'destination', 'duration', 'id', 'of', 'reason'];
    return table(columns, rows, style) + moreLine(nextCursor, style);
  },
});
