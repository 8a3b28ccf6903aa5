import { z } from 'zod';
import {
  type CallInput,
  type cancelRun,
  type getRun,
  listRuns,
  type ReplyOf,
  RunId,
  type sendSignal,
  type startRun,
} from '../../contracts/index.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { parsedArgument, textArgument } from './arguments.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';
import { NAME_CHARS, ownKey, SignalOptions, StartOptions } from './start-options.ts';

type Body<E extends typeof startRun | typeof sendSignal> = NonNullable<CallInput<E>['body']>;
type ListQuery = NonNullable<CallInput<typeof listRuns>['query']>;

/**
 * Workflow service methods that `ctx.workflows` uses. The typed HTTP client of the workflow service implements these
 * methods.
 */
export interface WorkflowAccess {
  start(scope: CallScope, body: Body<typeof startRun>): Promise<ReplyOf<typeof startRun>>;
  get(scope: CallScope, runId: RunId): Promise<ReplyOf<typeof getRun>>;
  list(scope: CallScope, query: ListQuery): Promise<ReplyOf<typeof listRuns>>;
  cancel(scope: CallScope, runId: RunId): Promise<ReplyOf<typeof cancelRun>>;
  signal(scope: CallScope, runId: RunId, name: string, body: Body<typeof sendSignal>): Promise<void>;
}

const ListOptions = z.strictObject(listRuns.query!.shape).prefault({});

/**
 * Creates `ctx.workflows`. Only registered workflows can be started, because inline definitions could exceed the
 * manifest's permissions. The methods throw PERMISSION_DENIED, VALIDATION_ERROR and errors of the workflow service.
 */
export function createWorkflowsService(workflows: WorkflowAccess): PlatformService {
  function scopeOf(context: PlatformCallContext): CallScope {
    requirePlatform(context.request, 'workflows');
    return callScope(context);
  }

  return {
    async start(context, [workflowId, input, options]) {
      const scope = scopeOf(context);
      const { idempotencyKey, ...start } = parsedArgument(StartOptions, options ?? {}, 'options');
      const asked = textArgument(workflowId, 'the workflow', NAME_CHARS);
      const { run } = await workflows.start(scope, {
        ...start,
        ...ownKey(context.request.plugin.id, `workflow ${asked}`, idempotencyKey),
        workflowId: asked,
        input: (input ?? {}) as Body<typeof startRun>['input'],
      });
      return run;
    },
    get: async (context, [runId]) => workflows.get(scopeOf(context), runIdOf(runId)),
    list: async (context, [options]) =>
      workflows.list(scopeOf(context), parsedArgument(ListOptions, options ?? {}, 'options')),
    cancel: async (context, [runId]) => workflows.cancel(scopeOf(context), runIdOf(runId)),
    async signal(context, [runId, name, payload, options]) {
      const scope = scopeOf(context);
      const { idempotencyKey } = parsedArgument(SignalOptions, options ?? {}, 'options');
      const signal = textArgument(name, 'the signal', NAME_CHARS);
      await workflows.signal(scope, runIdOf(runId), signal, {
        payload: payload ?? null,
        ...ownKey(context.request.plugin.id, `signal ${signal}`, idempotencyKey),
      });
    },
  };
}

function runIdOf(runId: unknown): RunId {
  return parsedArgument(RunId, runId, 'the run');
}
