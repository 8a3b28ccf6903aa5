import { z } from 'zod';
import { type ReplyOf, replayMessage, replayMessages } from '../../../contracts/index.ts';
import { type BulkResult, bulkFlags, bulkText, refuseBulkFlags, runBulk } from '../../bulk-action.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { filterFlags, filterOf, messageArg } from './message-args.ts';

type Reply = ReplyOf<typeof replayMessages>;

const STATUSES = ['dead', 'succeeded', 'all'] as const;
/** Messages of one call, so that progress shows. */
const BATCH = 200;

/** @spec docs/messages.md */
export const replay = defineCommand({
  name: 'messages replay',
  summary: 'Send one message again, or all that match, with the same ids',
  example: 'svc messages replay --dead --since 1d',
  args: z.object({
    id: messageArg.optional(),
    dead: z.boolean().default(false).describe('dead letters'),
    succeeded: z.boolean().default(false).describe('messages that were received; with --since'),
    all: z.boolean().default(false).describe('both; with --since'),
    ...filterFlags,
    ...bulkFlags,
  }),
  positionals: ['id'],
  async run({ id, dryRun, cursor, dead, succeeded, all, ...flags }, context) {
    const { client, clock } = context;
    const chosen = STATUSES.filter((status) => ({ dead, succeeded, all })[status]);
    if (chosen.length + (id === undefined ? 0 : 1) !== 1)
      throw new UsageError('Pass the id of a message, or one of --dead, --succeeded and --all.');
    if (id !== undefined) {
      refuseBulkFlags({ dryRun, cursor });
      const body = flags.endpoint === undefined ? {} : { endpointId: flags.endpoint };
      const { items, skipped } = await client.call(replayMessage, { params: { id }, body });
      return ok<BulkResult<Reply>>({
        ...{
          matching: null,
          items,
          refused: [],
          skipped,
          paused: null,
          nextCursor: null,
          continueWith: null,
        },
      });
    }
    if (!dead && flags.since === undefined)
      throw new UsageError(`--${chosen[0]} needs --since, for example --since 1h.`);
    const filter = filterOf(flags, clock.now());
    const { since } = filter;
    return runBulk<Reply>(
      (fields) =>
        client.call(replayMessages, { body: { ...filter, status: chosen[0]!, limit: BATCH, ...fields } }),
      {
        dryRun,
        cursor,
        absolute: since === undefined ? undefined : `--since ${new Date(since).toISOString()}`,
      },
      context,
    );
  },
  text: (result: BulkResult<Reply>, style) =>
    bulkText(result, { noun: 'messages', done: 'are sent again' }, style),
});
