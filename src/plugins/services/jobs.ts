import { z } from 'zod';
import {
  type CallInput,
  type cancelJob,
  type ExecutionRequest,
  type getJob,
  JobId,
  type ReplyOf,
  RetryPolicy,
  type submitJob,
} from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { parsedArgument, textArgument } from './arguments.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';
import { mayInvoke, pluginOf, requireInvoke } from './invoke-permission.ts';
import { NAME_CHARS, ownKey, StartOptions } from './start-options.ts';

/**
 * Workflow service methods that `ctx.jobs` uses. The typed HTTP client of the workflow service implements these
 * methods.
 */
export interface JobAccess {
  submit(
    scope: CallScope,
    body: NonNullable<CallInput<typeof submitJob>['body']>,
  ): Promise<ReplyOf<typeof submitJob>>;
  get(scope: CallScope, jobId: JobId): Promise<ReplyOf<typeof getJob>>;
  cancel(scope: CallScope, jobId: JobId): Promise<ReplyOf<typeof cancelJob>>;
}

const JobOptions = StartOptions.extend({
  retry: RetryPolicy.optional(),
  timeoutMs: z.number().int().positive().optional(),
});

/**
 * Creates `ctx.jobs` for the plugin's own jobs and the jobs in `permissions.invoke`. Other jobs are reported as not
 * found. The methods throw PERMISSION_DENIED, VALIDATION_ERROR and errors of the workflow service.
 */
export function createJobsService(jobs: JobAccess): PlatformService {
  function scopeOf(context: PlatformCallContext): CallScope {
    requirePlatform(context.request, 'jobs');
    return callScope(context);
  }

  /** Finds a job. Throws JOB_NOT_FOUND if the job is unknown or the plugin is not allowed to submit the job. */
  async function find(context: PlatformCallContext, id: unknown) {
    const scope = scopeOf(context);
    const jobId = parsedArgument(JobId, id, 'the job');
    const job = await jobs.get(scope, jobId);
    if (isOwn(context.request, job.handler) || mayInvoke(context.request, job.handler)) return { scope, job };
    throw new PlatformError('JOB_NOT_FOUND', `There is no job "${jobId}".`, { details: { jobId } });
  }

  return {
    async submit(context, [name, input, options]) {
      const scope = scopeOf(context);
      const { plugin } = context.request;
      const asked = textArgument(name, 'the job', NAME_CHARS * 2);
      const handler = asked.includes('/') ? asked : `${plugin.id}/${asked}`;
      if (!isOwn(context.request, handler)) requireInvoke(context.request, handler);
      const { idempotencyKey, ...start } = parsedArgument(JobOptions, options ?? {}, 'options');
      const { job } = await jobs.submit(scope, {
        ...start,
        ...ownKey(plugin.id, `job ${handler}`, idempotencyKey),
        handler,
        input: (input ?? {}) as NonNullable<CallInput<typeof submitJob>['body']>['input'],
      });
      return job;
    },
    get: async (context, [id]) => (await find(context, id)).job,
    async cancel(context, [id]) {
      const { scope, job } = await find(context, id);
      return jobs.cancel(scope, job.id);
    },
  };
}

function isOwn({ plugin }: ExecutionRequest, handler: string): boolean {
  return pluginOf(handler) === plugin.id;
}
