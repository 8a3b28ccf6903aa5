import { z } from 'zod';
import { previewRerun, type ReplyOf, rerunRun, rerunRuns } from '../../../contracts/index.ts';
import { type BulkResult, bulkFlags, bulkText, refuseBulkFlags, runBulk } from '../../bulk-action.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { InputFlag } from '../../input-flag.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { RunArg, StepArg } from './arguments.ts';
import { absoluteFlags, bulkFilterOf, runFilterFlags } from './run-filter.ts';
import { runPairs } from './views.ts';

type Preview = ReplyOf<typeof previewRerun>;
type Rerun = ReplyOf<typeof rerunRun>['run'] | Preview | BulkResult<ReplyOf<typeof rerunRuns>>;

/** @spec docs/workflows.md "Run again" */
export const rerun = defineCommand({
  name: 'workflows rerun',
  summary: 'Run again from the start or from a step, or rerun all runs that match',
  example: 'svc workflows rerun run_01b8dac5 --from build.test --dry-run',
  args: z.object({
    run: RunArg.optional(),
    from: StepArg.optional().describe('step to start from: <job>.<step>'),
    input: InputFlag.describe('new input as JSON; "@<file>" reads a file, "-" reads stdin'),
    all: z.boolean().default(false).describe('all ended runs that match, each from its start'),
    ...runFilterFlags,
    ...bulkFlags,
    dryRun: bulkFlags.dryRun.describe('only show which steps are reused, or how many runs match'),
  }),
  positionals: ['run'],
  async run({ from, input: given, dryRun, cursor, ...chosen }, context) {
    const { client, clock, cwd } = context;
    const filter = bulkFilterOf(chosen, clock.now());
    if (filter) {
      if (from !== undefined || given !== undefined)
        throw new UsageError('--from and --input need a run id.');
      return runBulk<ReplyOf<typeof rerunRuns>>(
        (fields) => client.call(rerunRuns, { body: { filter, ...fields } }),
        { dryRun, cursor, absolute: absoluteFlags(filter), question: (count) => `Rerun ${count} runs?` },
        context,
      );
    }
    refuseBulkFlags({ dryRun: false, cursor });
    const input =
      given === undefined ? undefined : ((await readJson('--input', given, cwd)) as Preview['input']);
    const body = {
      ...(from === undefined ? {} : { fromStep: from }),
      ...(input === undefined ? {} : { input }),
    };
    const params = { runId: chosen.run! };
    if (dryRun) return ok<Rerun>(await client.call(previewRerun, { params, body }));
    return ok<Rerun>((await client.call(rerunRun, { params, body })).run);
  },
  text(result: Rerun, style) {
    if ('items' in result) return bulkText(result, { noun: 'runs', done: 'started again' }, style);
    if ('reused' in result) return previewText(result);
    return runPairs(result, style);
  },
});

function previewText({ reused, repeated, notes }: Preview): string {
  return [
    `Reused: ${reused.map(({ id }) => id).join(', ') || 'nothing'}`,
    `Runs again: ${repeated.map(({ id }) => id).join(', ') || 'nothing'}`,
    ...notes,
  ].join('\n');
}
