import { z } from 'zod';
import {
  CODE_STEP,
  EnterStep,
  type ReadySteps,
  type RecalledSteps,
  SettleStep,
  type StepAnswer,
} from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { parsedArgument } from './arguments.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';
import { pluginOf, requireInvoke } from './invoke-permission.ts';

/** Identifies one replay of a workflow function. Only this replay receives the token. */
export interface ReplayId {
  runId: string;
  token: string;
}

/**
 * Calls that a replay makes to its workflow run. A call throws CONFLICT after the end of the replay. A call throws
 * WORKFLOW_DEFINITION_CHANGED if the workflow's code has changed.
 */
export interface StepAccess {
  begin(scope: CallScope, replay: ReplayId): Promise<unknown>;
  recall(scope: CallScope, replay: ReplayId, after: number): Promise<RecalledSteps>;
  enter(scope: CallScope, replay: ReplayId, step: EnterStep): Promise<StepAnswer>;
  settle(scope: CallScope, replay: ReplayId, step: SettleStep): Promise<StepAnswer>;
  watch(scope: CallScope, replay: ReplayId): Promise<ReadySteps>;
}

const Place = z.number().int().min(0);

/**
 * Connects calls of `ctx.step` and related functions to the workflow run. @spec docs/workflows.md "Workflows in code"
 */
export function createStepsService(steps: StepAccess): PlatformService {
  return {
    begin: async (context) => steps.begin(callScope(context), replayOf(context)),
    recall: async (context, [after]) =>
      steps.recall(callScope(context), replayOf(context), parsedArgument(Place, after, 'the place')),
    async enter(context, [step]) {
      const asked = parsedArgument(EnterStep, step, 'the step');
      const replay = replayOf(context);
      requireUse(context, asked.uses);
      return steps.enter(callScope(context), replay, asked);
    },
    settle: async (context, [step]) =>
      steps.settle(callScope(context), replayOf(context), parsedArgument(SettleStep, step, 'the step')),
    watch: async (context) => steps.watch(callScope(context), replayOf(context)),
  };
}

/**
 * Returns the run id and the token of the replay. Both come from the platform's context, not from the plugin's
 * arguments, so that a plugin cannot access another run.
 */
function replayOf({ request }: PlatformCallContext): ReplayId {
  const { runId, pass: replay } = request.hostContext as { runId?: unknown; pass?: { token?: unknown } };
  if (typeof runId === 'string' && typeof replay?.token === 'string') return { runId, token: replay.token };
  throw new PlatformError(
    'VALIDATION_ERROR',
    "Steps are only available in a workflow's function; this is another handler.",
  );
}

/** Kinds of steps that need no permission. Steps that call commands or child workflows need a permission. */
const FREE = new Set([CODE_STEP, 'wait', 'signal', 'approval']);

function requireUse({ request }: PlatformCallContext, uses: string): void {
  if (FREE.has(uses)) return;
  if (uses === 'workflow') {
    requirePlatform(request, 'workflows');
    return;
  }
  if (!/^(?:@[^/]+\/)?[^@/:]+\/[^/]+$/.test(uses))
    throw new PlatformError('VALIDATION_ERROR', `"${uses}" is not a command; use "<plugin>/<command>".`);
  if (pluginOf(uses) !== request.plugin.id) requireInvoke(request, uses);
}
