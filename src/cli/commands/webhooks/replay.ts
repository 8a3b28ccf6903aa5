import { z } from 'zod';
import { EventName, PluginId, replayDeliveries, replayDelivery } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { parseSince } from '../logs/filter.ts';

interface Replayed {
  items: Array<{ webhookId: string; replayOf: string }>;
  skipped: number;
}

/** @spec docs/webhooks.md "Replay" */
export const replay = defineCommand({
  name: 'webhooks replay',
  summary: 'Run the handler again for one delivery or for all failed ones',
  example: 'svc webhooks replay --failed --since 1h',
  idField: 'webhookId',
  args: z.object({
    id: z.uuid().optional().describe('delivery id'),
    failed: z.boolean().default(false).describe('all failed deliveries'),
    dead: z.boolean().default(false).describe('all without attempts left'),
    interrupted: z.boolean().default(false).describe('all interrupted by a crash of the gateway'),
    since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
    plugin: PluginId.optional().describe('only deliveries to this plugin'),
    event: EventName.optional().describe('only deliveries of this event'),
  }),
  positionals: ['id'],
  async run({ id, failed, dead, interrupted, since, plugin, event }, { client, clock, ui }) {
    const statuses = (['failed', 'dead', 'interrupted'] as const).filter(
      (status) => ({ failed, dead, interrupted })[status],
    );
    if ((id === undefined) === (statuses.length === 0))
      throw new UsageError('Pass a delivery id, or --failed, --dead or --interrupted with --since.');
    if (id !== undefined) {
      const item = await client.call(replayDelivery, { params: { webhookId: id } });
      return ok<Replayed>({ items: [item], skipped: 0 });
    }
    if (since === undefined) throw new UsageError('--since is required, for example --since 1h.');
    const filter = { ...(plugin ? { pluginId: plugin } : {}), ...(event ? { event } : {}) };
    const sinceMs = parseSince(since, clock.now());
    const all: Replayed = { items: [], skipped: 0 };
    for (const status of statuses) {
      for (let more = true; more; ) {
        const reply = await client.call(replayDeliveries, { body: { ...filter, status, since: sinceMs } });
        all.items.push(...reply.items);
        all.skipped = reply.skipped;
        more = reply.more;
        if (more) ui.note(`${all.items.length} replayed so far`);
      }
    }
    return ok(all);
  },
  text({ items, skipped }: Replayed) {
    const skippedText =
      skipped > 0 ? ` ${skipped} were skipped: already replayed or handled, or without a stored body.` : '';
    if (items.length === 1 && skipped === 0) return `Replayed as ${items[0]!.webhookId}.`;
    return `Replayed ${items.length} deliveries.${skippedText}`;
  },
});
