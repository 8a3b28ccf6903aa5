import { ReplayEnd } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { StepAccess } from '../../plugins/index.ts';
import type { ReplayCall, ReplayRoutes } from './domain/code/replays.ts';
import { CODE_JOB } from './domain/definition/compile-code.ts';
import { interruptedOf } from './domain/steps/interrupted.ts';
import type { Handlers } from './domain/steps/kinds/handlers.ts';
import { pluginAwayOf } from './domain/steps/plugin-away.ts';

/** Runs one replay of a workflow function. Throws if the function did not run to its end. */
export async function runReplay(
  handlers: Handlers,
  { code, run, requestId, spanId, input, context, timeoutMs, signal, alone, log }: ReplayCall,
): Promise<ReplayEnd> {
  const { result, error, exitCode } = await handlers
    .execute({
      declared: { ...code, idempotent: true },
      host: 'workflow',
      hostContext: {
        host: 'workflow',
        runId: run.id,
        workflowId: run.workflowId,
        stepId: CODE_JOB,
        attempt: 1,
        pass: context,
      },
      input,
      tenantId: run.tenantId,
      hostId: run.hostId,
      requestId,
      traceId: run.traceId,
      parentSpanId: spanId,
      timeoutMs,
      signal,
      alone,
      begun: () => {},
      log,
    })
    .catch((thrown: unknown) => {
      throw pluginAwayOf(thrown, code.pluginId) ?? interruptedOf(thrown) ?? thrown;
    });
  const parsed = ReplayEnd.safeParse(result);
  if (exitCode === 0 && parsed.success) return parsed.data;
  throw new PlatformError(
    'INVALID_HANDLER',
    `"${code.handler}" of plugin ${code.pluginId} is no workflow: export what defineWorkflow returns. (${error?.message ?? 'It answered like an ordinary handler.'})`,
    { details: { pluginId: code.pluginId, handler: code.handler } },
  );
}

/** Returns the step interface for workflow functions that run in this service. */
export function localSteps(replays: ReplayRoutes): StepAccess {
  return {
    begin: async (_scope, { runId, token }) => replays.require(runId, token).begin(),
    recall: async (_scope, { runId, token }, after) => replays.require(runId, token).recall(after),
    enter: async (_scope, { runId, token }, step) => replays.require(runId, token).enter(step),
    settle: async (_scope, { runId, token }, step) => replays.require(runId, token).settle(step),
    watch: async (_scope, { runId, token }) => replays.require(runId, token).watch(),
  };
}
