import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { RunStatus } from './workflows.ts';

export const JobId = z.string().min(1).max(128).brand('JobId');
export type JobId = z.infer<typeof JobId>;

/** One background call of a plugin's job handler. */
export const Job = z
  .object({
    id: JobId,
    handler: z.string(),
    status: RunStatus,
    attempts: z.number().int(),
    input: z.json(),
    result: z.json().nullable(),
    error: z
      .object({ code: z.string(), message: z.string(), details: z.record(z.string(), z.unknown()) })
      .nullable(),
    createdAt: z.number().describe('Epoch milliseconds'),
    runAt: z.number().nullable(),
    startedAt: z.number().nullable(),
    finishedAt: z.number().nullable(),
  })
  .meta({ id: 'Job' });
export type Job = z.infer<typeof Job>;

/** `handler` is `<plugin id>/<job id>`. */
export const submitJob = endpoint({
  method: 'POST',
  path: '/api/v1/jobs',
  summary: 'Submit a background job',
  tags: ['jobs'],
  status: 202,
  body: z.strictObject({
    handler: z
      .string()
      .min(3)
      .max(512)
      .regex(/^.+\/[^/]+$/, 'must be "<plugin id>/<job id>"'),
    input: z.json().default({}),
    runAt: z.number().optional(),
    priority: z.number().int().min(-100).max(100).default(0),
    idempotencyKey: z.string().min(1).max(256).optional(),
  }),
  reply: z.object({ job: Job }),
  errors: ['VALIDATION_ERROR', 'JOB_NOT_FOUND', 'CONFLICT', 'QUOTA_EXCEEDED'],
});

export const getJob = endpoint({
  method: 'GET',
  path: '/api/v1/jobs/:jobId',
  summary: 'Status and result of a job',
  tags: ['jobs'],
  params: z.object({ jobId: JobId }),
  reply: Job,
  errors: ['NOT_FOUND'],
});
