import { z } from 'zod';
import { type ReplyOf, resumeRun, resumeWorkflow } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pauseArgs, pauseTargetOf } from './pause-target.ts';
import { runPairs } from './views.ts';

type Resumed = ReplyOf<typeof resumeRun>['run'] | ReplyOf<typeof resumeWorkflow>;

/** @spec docs/workflows.md "Pause and resume" */
export const resume = defineCommand({
  name: 'workflows resume',
  summary: 'Resume a paused run or workflow',
  example: 'svc workflows resume run_01b8dac5',
  args: z.object(pauseArgs),
  positionals: ['run'],
  async run(args, { client }) {
    const { runId, workflowId } = pauseTargetOf(args);
    if (runId !== undefined) return ok<Resumed>((await client.call(resumeRun, { params: { runId } })).run);
    return ok<Resumed>(await client.call(resumeWorkflow, { params: { workflowId } }));
  },
  text(resumed: Resumed, style) {
    return 'id' in resumed ? runPairs(resumed, style) : `The workflow ${resumed.workflowId} is not paused.`;
  },
});
