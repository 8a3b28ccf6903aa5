import type { z } from 'zod';
import { WorkflowId } from '../../../contracts/index.ts';
import { UsageError } from '../../parse-args.ts';
import { RunArg } from './arguments.ts';

/** Arguments of the commands that pause and resume. */
export const pauseArgs = {
  run: RunArg.optional(),
  workflow: WorkflowId.optional().describe('the workflow, instead of a run'),
};

type RunId = z.output<typeof RunArg>;

/** Returns the run or the workflow. Throws UsageError if the command names both or neither. */
export function pauseTargetOf({
  run,
  workflow,
}: {
  run?: RunId | undefined;
  workflow?: string | undefined;
}): { runId: RunId; workflowId?: undefined } | { runId?: undefined; workflowId: string } {
  if (run !== undefined && workflow === undefined) return { runId: run };
  if (run === undefined && workflow !== undefined) return { workflowId: workflow };
  throw new UsageError('Pass either a run id or --workflow <id>.');
}
