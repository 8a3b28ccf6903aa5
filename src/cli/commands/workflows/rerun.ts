import { z } from 'zod';
import { type ReplyOf, rerunRun } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { RunArg, StepArg } from './arguments.ts';
import { runPairs } from './views.ts';

export const rerun = defineCommand({
  name: 'workflows rerun',
  summary: 'Run again from the start or from a step',
  example: 'svc workflows rerun run_01b8dac5 --from build.test',
  args: z.object({ run: RunArg, from: StepArg.optional().describe('step to start from: <job>.<step>') }),
  async run({ run, from }, { client }) {
    const body = from === undefined ? {} : { fromStep: from };
    return ok((await client.call(rerunRun, { params: { runId: run }, body })).run);
  },
  text: (run: ReplyOf<typeof rerunRun>['run'], style) => runPairs(run, style),
});
