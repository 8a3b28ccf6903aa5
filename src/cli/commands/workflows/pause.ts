import { z } from 'zod';
import { pauseRun, pauseWorkflow, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pauseArgs, pauseTargetOf } from './pause-target.ts';
import { runPairs } from './views.ts';

type Paused = ReplyOf<typeof pauseRun>['run'] | ReplyOf<typeof pauseWorkflow>;

/** @spec docs/workflows.md "Pause and resume" */
export const pause = defineCommand({
  name: 'workflows pause',
  summary: 'Pause a run, or keep all runs of a workflow in the queue',
  example: 'svc workflows pause --workflow nightly',
  args: z.object(pauseArgs),
  positionals: ['run'],
  async run(args, { client }) {
    const { runId, workflowId } = pauseTargetOf(args);
    if (runId !== undefined) return ok<Paused>((await client.call(pauseRun, { params: { runId } })).run);
    return ok<Paused>(await client.call(pauseWorkflow, { params: { workflowId } }));
  },
  text(paused: Paused, style) {
    if ('id' in paused) return runPairs(paused, style);
    return `The workflow ${paused.workflowId} is paused.\nIts runs stay queued. Runs that have begun continue.`;
  },
});
