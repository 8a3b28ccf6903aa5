import { z } from 'zod';
import { cancelRun, cancelRuns, type ReplyOf } from '../../../contracts/index.ts';
import { type BulkResult, bulkFlags, bulkText, refuseBulkFlags, runBulk } from '../../bulk-action.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { RunArg } from './arguments.ts';
import { absoluteFlags, bulkFilterOf, runFilterFlags } from './run-filter.ts';
import { coloured } from './views.ts';

type Cancelled = ReplyOf<typeof cancelRun> | BulkResult<ReplyOf<typeof cancelRuns>>;

/** @spec docs/workflows.md "Many runs at once" */
export const cancel = defineCommand({
  name: 'workflows cancel',
  summary: 'Cancel a run and its children, or all runs that match',
  example: 'svc workflows cancel --workflow nightly --dry-run',
  args: z.object({
    run: RunArg.optional(),
    all: z.boolean().default(false).describe('all unfinished runs that match'),
    ...runFilterFlags,
    ...bulkFlags,
  }),
  positionals: ['run'],
  async run({ dryRun, cursor, ...chosen }, context) {
    const { client, clock } = context;
    const filter = bulkFilterOf(chosen, clock.now());
    if (!filter) {
      refuseBulkFlags({ dryRun, cursor });
      return ok<Cancelled>(await client.call(cancelRun, { params: { runId: chosen.run! } }));
    }
    const question = (count: string) => `Cancel ${count} runs?`;
    return runBulk<ReplyOf<typeof cancelRuns>>(
      (fields) => client.call(cancelRuns, { body: { filter, ...fields } }),
      { dryRun, cursor, question, absolute: absoluteFlags(filter) },
      context,
    );
  },
  text(result: Cancelled, style) {
    if ('items' in result) return bulkText(result, { noun: 'runs', done: 'cancelled' }, style);
    const { cancelled, status } = result;
    return cancelled ? `The run is ${coloured(status, style)}.` : notCancelled(status, style);
  },
});

function notCancelled(status: string, style: Style): string {
  if (status !== 'cancelling') return `The run had already ended: ${coloured(status, style)}.`;
  return 'The run had already timed out and is cleaning up.';
}
