import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { WorkflowId } from './workflow-fields.ts';
import { RunId, WorkflowRun } from './workflow-records.ts';

const tags = ['workflows'];
// An interface is named in declarations, which would otherwise repeat the type of a run.
export interface PauseReply extends z.ZodObject<{ run: typeof WorkflowRun }> {}
const reply: PauseReply = z.object({ run: WorkflowRun });
const ofRun = { tags, params: z.object({ runId: RunId }), reply } as const;
const ofWorkflow = {
  tags,
  params: z.object({ workflowId: WorkflowId }),
  reply: z.object({ workflowId: z.string(), paused: z.boolean() }),
} as const;

/** Pauses a run: steps in flight end, and no further step begins. CONFLICT: it has ended or is being cancelled. */
export const pauseRun = endpoint({
  ...ofRun,
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/pause',
  summary: 'Pause a run',
  errors: ['WORKFLOW_RUN_NOT_FOUND', 'CONFLICT'],
});

/** Does nothing if the run is not paused. */
export const resumeRun = endpoint({
  ...ofRun,
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/resume',
  summary: 'Resume a paused run',
  errors: ['WORKFLOW_RUN_NOT_FOUND'],
});

/** Pauses a workflow in the namespace: starts are accepted and stay queued. Runs that have begun continue. */
export const pauseWorkflow = endpoint({
  ...ofWorkflow,
  method: 'POST',
  path: '/api/v1/workflows/:workflowId/pause',
  summary: 'Keep the runs of a workflow in the queue',
  errors: ['WORKFLOW_NOT_FOUND'],
});

export const resumeWorkflow = endpoint({
  ...ofWorkflow,
  method: 'POST',
  path: '/api/v1/workflows/:workflowId/resume',
  summary: 'Let the runs of a paused workflow begin',
});
