import { z } from 'zod';
import { type ReplyOf, retryDeadItems, retryItem } from '../../../contracts/index.ts';
import { type BulkResult, bulkFlags, countText, refuseBulkFlags, runBulk } from '../../bulk-action.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { queueArg } from './queue-args.ts';

type Reply = ReplyOf<typeof retryDeadItems>;
type Retried = Pick<BulkResult<Reply>, 'items'> & Partial<BulkResult<Reply>>;

/** Items of one call, so that progress shows. */
const BATCH = 200;

/** @spec docs/queues.md */
export const retry = defineCommand({
  name: 'queues retry',
  summary: 'Let one dead item of a queue wait again, or all of them',
  example: 'svc queues retry orders --dead',
  idField: 'id',
  args: z.object({
    ...queueArg,
    item: z.string().min(1).max(256).optional().describe('id of the item'),
    dead: z.boolean().default(false).describe('all dead items'),
    ...bulkFlags,
  }),
  positionals: ['queue', 'item'],
  async run({ queue, item, dead, dryRun, cursor }, context) {
    const { client } = context;
    const params = { name: queue };
    if ((item === undefined) !== dead) throw new UsageError('Pass the id of an item, or --dead.');
    if (item !== undefined) {
      refuseBulkFlags({ dryRun, cursor });
      const { id } = await client.call(retryItem, { params: { ...params, id: item } });
      return ok<Retried>({ items: [{ id }] });
    }
    return runBulk<Reply>(
      (fields) => client.call(retryDeadItems, { params, body: { limit: BATCH, ...fields } }),
      { dryRun, cursor },
      context,
    );
  },
  text({ items, matching, continueWith }: Retried) {
    if (matching && continueWith && items.length === 0) return `${countText(matching)} items match.`;
    const more = continueWith ? `\nTo continue, add ${continueWith}` : '';
    return `${items.length} ${items.length === 1 ? 'item waits' : 'items wait'} again.${more}`;
  },
});
