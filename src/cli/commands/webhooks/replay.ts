import { z } from 'zod';
import {
  EventName,
  PluginId,
  type ReplyOf,
  replayDeliveries,
  replayDelivery,
  trustDelivery,
} from '../../../contracts/index.ts';
import { type BulkResult, bulkFlags, countText, refuseBulkFlags, runBulk } from '../../bulk-action.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { parseSince } from '../logs/filter.ts';

type Bulk = BulkResult<ReplyOf<typeof replayDeliveries>>;
type Replayed = Pick<Bulk, 'items' | 'skipped'> & Partial<Bulk>;

const FAILURES = ['failed', 'dead', 'interrupted'] as const;
const STATUSES = [...FAILURES, 'succeeded'] as const;
/** Deliveries of one call, so that progress shows. */
const BATCH = 200;

/** @spec docs/webhooks.md "Replay" */
export const replay = defineCommand({
  name: 'webhooks replay',
  summary: 'Run the handler again for one delivery or for all that match',
  example: 'svc webhooks replay --failed --since 1h',
  idField: 'webhookId',
  args: z.object({
    id: z.uuid().optional().describe('delivery id'),
    failed: z.boolean().default(false).describe('all failed deliveries'),
    dead: z.boolean().default(false).describe('all without attempts left'),
    interrupted: z.boolean().default(false).describe('all interrupted by a crash of the gateway'),
    succeeded: z.boolean().default(false).describe('all that succeeded'),
    all: z.boolean().default(false).describe('of any time; by default failed, dead and interrupted ones'),
    since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
    plugin: PluginId.optional().describe('only deliveries to this plugin'),
    event: EventName.optional().describe('only deliveries of this event'),
    search: z.string().min(1).optional().describe('only deliveries with this text'),
    trust: z.boolean().default(false).describe('run a refused delivery although its signature is not valid'),
    ...bulkFlags,
  }),
  positionals: ['id'],
  async run({ id, all, since, plugin, event, search, trust, dryRun, cursor, ...flags }, context) {
    const { client, clock } = context;
    const chosen = STATUSES.filter((status) => flags[status]);
    const status = chosen.length === 0 && all ? [...FAILURES] : chosen;
    if ((id === undefined) === (status.length === 0))
      throw new UsageError(
        'Pass a delivery id, or --all, or --failed, --dead, --interrupted or --succeeded with --since.',
      );
    if (id !== undefined) {
      refuseBulkFlags({ dryRun, cursor });
      const item = await client.call(trust ? trustDelivery : replayDelivery, { params: { webhookId: id } });
      return ok<Replayed>({ items: [item], skipped: 0 });
    }
    if (trust) throw new UsageError('--trust needs a delivery id: each delivery must be judged by itself.');
    if (since === undefined && !all)
      throw new UsageError('--since is required, for example --since 1h. --all replays those of any time.');
    const from = since === undefined ? undefined : parseSince(since, clock.now());
    const filter = {
      ...(plugin ? { pluginId: plugin } : {}),
      ...(event ? { event } : {}),
      ...(search === undefined ? {} : { search }),
      ...(from === undefined ? {} : { since: from }),
    };
    return runBulk<ReplyOf<typeof replayDeliveries>>(
      (fields) => client.call(replayDeliveries, { body: { ...filter, status, limit: BATCH, ...fields } }),
      {
        dryRun,
        cursor,
        absolute: from === undefined ? undefined : `--since ${new Date(from).toISOString()}`,
      },
      context,
    );
  },
  text({ items, skipped, matching, refused = [], paused, continueWith }: Replayed) {
    const isDry = matching && continueWith && items.length + skipped + refused.length === 0 && !paused;
    if (isDry) return `${countText(matching)} deliveries match.`;
    const skippedText =
      skipped > 0 ? ` ${skipped} were skipped: already replayed or handled, or without a stored body.` : '';
    if (items.length === 1 && skipped === 0) return `Replayed as ${items[0]!.webhookId}.`;
    const problems = refused.map(({ webhookId, error }) => `refused ${webhookId}: ${error.message}`);
    const stopped = continueWith ? [paused?.message ?? '', `To continue, add ${continueWith}`] : [];
    return [`Replayed ${items.length} deliveries.${skippedText}`, ...problems, ...stopped].join('\n');
  },
});
