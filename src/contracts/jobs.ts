import { z } from 'zod';
import { Moment, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { RetryPolicy } from './retry-policy.ts';
import { AnyJson } from './workflow-fields.ts';
import { RunError, RunStatus, RunStatusFilter, StepWait } from './workflow-records.ts';

export const JobId = z.string().min(1).max(128).brand('JobId');
export type JobId = z.infer<typeof JobId>;

/** One background execution of a plugin's job handler. */
export const Job = z
  .object({
    id: JobId,
    handler: z.string(),
    status: RunStatus,
    queuedReason: z.string().nullable().describe('Why a queued job has not started'),
    waitingFor: StepWait.nullable().describe(
      'What a waiting job waits for. A decision is made on step `job.run` of the run with the same id',
    ),
    attempts: z.number().int(),
    traceId: z.string().describe('Trace of the request that submitted it'),
    deliveryId: z.string().nullable().describe('`webhookId` of the delivery whose handler submitted it'),
    priority: z.number().int(),
    input: AnyJson,
    result: AnyJson.nullable(),
    error: RunError.nullable(),
    createdAt: z.number().describe('Epoch milliseconds'),
    runAt: z.number().nullable(),
    startedAt: z.number().nullable(),
    finishedAt: z.number().nullable(),
  })
  .meta({ id: 'Job' });
export type Job = z.infer<typeof Job>;

const JobHandler = z
  .string()
  .min(3)
  .max(512)
  .regex(/^.+\/[^/]+$/, 'must be "<plugin id>/<job id>"');

/**
 * Submits a job. `handler` is `<plugin id>/<job id>`. The `Idempotency-Key` header is equivalent to `idempotencyKey`.
 * The two values must be equal if both are set.
 */
export const submitJob = endpoint({
  method: 'POST',
  path: '/api/v1/jobs',
  summary: 'Submit a background job',
  tags: ['jobs'],
  status: 202,
  body: z.strictObject({
    handler: JobHandler,
    input: AnyJson.default({}),
    runAt: Moment.optional(),
    priority: z.number().int().min(-100).max(100).default(0),
    idempotencyKey: z.string().min(1).max(256).optional(),
    retry: RetryPolicy.optional(),
    timeoutMs: z.number().int().positive().optional(),
  }),
  reply: z.object({ job: Job }),
  errors: ['VALIDATION_ERROR', 'JOB_NOT_FOUND', 'CONFLICT', 'QUOTA_EXCEEDED', 'CONCURRENT_LIMIT_EXCEEDED'],
});

const params = z.object({ jobId: JobId });

export const getJob = endpoint({
  method: 'GET',
  path: '/api/v1/jobs/:jobId',
  summary: 'Show status and result of a job',
  tags: ['jobs'],
  params,
  reply: Job,
  errors: ['JOB_NOT_FOUND'],
});

export const listJobs = endpoint({
  method: 'GET',
  path: '/api/v1/jobs',
  summary: 'List jobs, newest first',
  tags: ['jobs'],
  query: z.strictObject({
    status: RunStatusFilter.optional(),
    handler: JobHandler.optional(),
    cursor: z.string().max(1024).optional(),
    limit: z.coerce.number().int().min(1).max(1000).default(50),
  }),
  reply: page(Job),
});

export const cancelJob = endpoint({
  method: 'DELETE',
  path: '/api/v1/jobs/:jobId',
  summary: 'Cancel a job',
  tags: ['jobs'],
  params,
  reply: z.object({ cancelled: z.boolean(), status: RunStatus }),
  errors: ['JOB_NOT_FOUND', 'WORKFLOW_ALREADY_CANCELLED'],
});
