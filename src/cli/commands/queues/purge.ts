import { z } from 'zod';
import { getQueue, purgeQueue } from '../../../contracts/index.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { queueArg } from './queue-args.ts';

/** @spec docs/queues.md */
export const purge = defineCommand({
  name: 'queues purge',
  summary: 'Delete the waiting or the dead items of a queue',
  example: 'svc queues purge orders dead --yes',
  args: z.object({ ...queueArg, status: z.enum(['waiting', 'dead']).describe('items to delete') }),
  positionals: ['queue', 'status'],
  async run({ queue, status }, context) {
    const { client } = context;
    const params = { name: queue };
    const { [status]: count } = await client.call(getQueue, { params });
    if (!(await confirm(context, `Delete ${count} ${status} items of "${queue}"?`)))
      throw new CancelledError();
    let deleted = 0;
    for (let more = true; more; ) {
      const batch = await client.call(purgeQueue, { params, query: { status } });
      deleted += batch.deleted;
      more = batch.more;
    }
    return ok({ deleted });
  },
  text: ({ deleted }: { deleted: number }) => `Deleted ${deleted} items.`,
});
