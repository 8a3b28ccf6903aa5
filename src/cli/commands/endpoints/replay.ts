import { z } from 'zod';
import { type ReplyOf, replayEndpoint } from '../../../contracts/index.ts';
import { type BulkResult, bulkFlags, bulkText, runBulk } from '../../bulk-action.ts';
import { defineCommand } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { parseSince } from '../logs/filter.ts';
import { endpointArg } from './endpoint-args.ts';

type Reply = ReplyOf<typeof replayEndpoint>;
/** Messages of one call, so that progress shows. */
const BATCH = 200;

/** @spec docs/messages.md */
export const replay = defineCommand({
  name: 'endpoints replay',
  summary: 'Send messages to an endpoint again: its dead letters, or all',
  example: 'svc endpoints replay ep_01k8x2v7w9m4q5r6s7t8a9b0cd --dead',
  args: z.object({
    id: endpointArg,
    dead: z.boolean().default(false).describe('its dead letters'),
    all: z.boolean().default(false).describe('succeeded messages, too; with --since'),
    since: z.string().optional().describe('start: 30s, 10m, 2h, 1d ago, or a time'),
    until: z.string().optional().describe('end: like --since'),
    ...bulkFlags,
  }),
  async run({ id, dead, all, since, until, dryRun, cursor }, context) {
    const { client, clock } = context;
    if (dead === all) throw new UsageError('Pass either --dead or --all.');
    if (all && since === undefined) throw new UsageError('--all needs --since, for example --since 1h.');
    const from = since === undefined ? undefined : parseSince(since, clock.now());
    const to = until === undefined ? undefined : parseSince(until, clock.now(), '--until');
    const body = {
      status: all ? ('all' as const) : ('dead' as const),
      ...(from === undefined ? {} : { since: from }),
      ...(to === undefined ? {} : { until: to }),
      limit: BATCH,
    };
    return runBulk<Reply>(
      (fields) => client.call(replayEndpoint, { params: { id }, body: { ...body, ...fields } }),
      {
        dryRun,
        cursor,
        absolute: from === undefined ? undefined : `--since ${new Date(from).toISOString()}`,
      },
      context,
    );
  },
  text: (result: BulkResult<Reply>, style) =>
    bulkText(result, { noun: 'messages', done: 'are sent again' }, style),
});
