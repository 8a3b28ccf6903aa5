import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { AnyJson } from './workflow-fields.ts';
import { RunError, RunId } from './workflow-records.ts';

const tags = ['workflows'];

export const decideApproval = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/approvals/:stepId',
  summary: 'Approve or refuse a waiting step',
  tags,
  params: z.object({ runId: RunId, stepId: z.string().min(1).max(256) }),
  body: z.strictObject({
    approved: z.boolean(),
    comment: z.string().max(4096).optional(),
    data: AnyJson.optional().describe('Data that the form of the step asks for'),
  }),
  reply: z.object({ accepted: z.literal(true) }),
  errors: [
    'VALIDATION_ERROR',
    'FORBIDDEN',
    'WORKFLOW_RUN_NOT_FOUND',
    'NOT_FOUND',
    'PAYLOAD_TOO_LARGE',
    'CONFLICT',
  ],
});

/**
 * Sends a signal, which is stored until a step waits for this signal. The `Idempotency-Key` header is equivalent to
 * `idempotencyKey`. A repeated key has no effect while the run is retained.
 */
export const sendSignal = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/signals/:name',
  summary: 'Send a signal to a run',
  tags,
  params: z.object({ runId: RunId, name: z.string().min(1).max(256) }),
  body: z
    .strictObject({
      payload: AnyJson.default(null),
      idempotencyKey: z.string().min(1).max(256).optional(),
    })
    .default({ payload: null }),
  reply: z.object({ accepted: z.literal(true) }),
  errors: ['VALIDATION_ERROR', 'FORBIDDEN', 'WORKFLOW_RUN_NOT_FOUND', 'PAYLOAD_TOO_LARGE', 'CONFLICT'],
});

/**
 * Resolves a step that a crash interrupted. The caller must decide, because the platform cannot determine whether the
 * step's effect has happened.
 */
export const decideStep = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/runs/:runId/steps/:stepId/decision',
  summary: 'Decide on an interrupted step',
  tags,
  params: z.object({ runId: RunId, stepId: z.string().min(1).max(256) }),
  body: z.strictObject({ action: z.enum(['retry', 'succeed', 'fail']), output: AnyJson.default(null) }),
  reply: z.object({ accepted: z.literal(true) }),
  errors: ['WORKFLOW_RUN_NOT_FOUND', 'NOT_FOUND', 'PAYLOAD_TOO_LARGE', 'CONFLICT'],
});

const StepOfRun = z.object({ runId: z.string(), stepId: z.string() });

/** Applies one decision to all matching interrupted steps of workflow runs and jobs. */
export const decideSteps = endpoint({
  method: 'POST',
  path: '/api/v1/workflows/decisions',
  summary: 'Decide on the interrupted steps of many runs',
  tags,
  body: z.strictObject({
    action: z.enum(['retry', 'succeed', 'fail']),
    output: AnyJson.default(null),
    workflowId: z.string().max(256).optional().describe('Only runs of this workflow, or of this job handler'),
    stepId: z.string().min(1).max(256).optional().describe('Only steps with this id'),
    cursor: z.string().max(1024).optional(),
    limit: z.coerce.number().int().min(1).max(1000).default(50).describe('Runs examined per call'),
  }),
  reply: z.object({
    decided: z.array(StepOfRun),
    refused: z.array(StepOfRun.extend({ error: RunError })).describe('Already decided, or ended'),
    nextCursor: z.string().nullable(),
  }),
  errors: ['VALIDATION_ERROR', 'PAYLOAD_TOO_LARGE'],
});
