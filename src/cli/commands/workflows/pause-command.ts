import { z } from 'zod';
import { type pauseRun, type pauseWorkflow, type ReplyOf, WorkflowId } from '../../../contracts/index.ts';
import { type Command, defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { RunArg } from './arguments.ts';
import { runPairs } from './views.ts';

const args = z.object({
  run: RunArg.optional(),
  workflow: WorkflowId.optional().describe('the workflow, instead of a run'),
});

type Changed = ReplyOf<typeof pauseRun>['run'] | ReplyOf<typeof pauseWorkflow>;

interface PauseCommand extends Pick<Command, 'name' | 'summary' | 'example'> {
  ofRun: typeof pauseRun;
  ofWorkflow: typeof pauseWorkflow;
  /** Returns the text for a workflow. */
  workflowText(workflowId: string): string;
}

/**
 * Defines a command that pauses or resumes either a run or a workflow. The command throws UsageError if its arguments name
 * both or neither. @spec docs/workflows.md "Pause and resume"
 */
export function definePauseCommand({ ofRun, ofWorkflow, workflowText, ...about }: PauseCommand) {
  return defineCommand({
    ...about,
    args,
    positionals: ['run'],
    async run({ run: runId, workflow: workflowId }, { client }) {
      if (runId !== undefined && workflowId === undefined)
        return ok<Changed>((await client.call(ofRun, { params: { runId } })).run);
      if (runId === undefined && workflowId !== undefined)
        return ok<Changed>(await client.call(ofWorkflow, { params: { workflowId } }));
      throw new UsageError('Pass either a run id or --workflow <id>.');
    },
    text: (changed: Changed, style) =>
      'id' in changed ? runPairs(changed, style) : workflowText(changed.workflowId),
  });
}
