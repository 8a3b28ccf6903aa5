import { CODE_STEP, EnterStep, type ReadySteps, SettleStep, type StepAnswer } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { parsedArgument } from './arguments.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';
import { pluginOf, requireInvoke } from './invoke-permission.ts';

/** Which pass through which run's function asks; told to that pass alone. */
export interface PassId {
  runId: string;
  token: string;
}

/** The run behind a workflow's function. Throws CONFLICT once its pass is over, and WORKFLOW_DEFINITION_CHANGED. */
export interface StepAccess {
  begin(scope: CallScope, pass: PassId): Promise<unknown>;
  enter(scope: CallScope, pass: PassId, step: EnterStep): Promise<StepAnswer>;
  settle(scope: CallScope, pass: PassId, step: SettleStep): Promise<StepAnswer>;
  watch(scope: CallScope, pass: PassId): Promise<ReadySteps>;
}

/** What `ctx.step` and its like say to their run. @spec docs/workflows.md "Workflows in code" */
export function createStepsService(steps: StepAccess): PlatformService {
  return {
    begin: async (context) => steps.begin(callScope(context), passOf(context)),
    async enter(context, [step]) {
      const asked = parsedArgument(EnterStep, step, 'the step');
      const pass = passOf(context);
      requireUse(context, asked.uses);
      return steps.enter(callScope(context), pass, asked);
    },
    settle: async (context, [step]) =>
      steps.settle(callScope(context), passOf(context), parsedArgument(SettleStep, step, 'the step')),
    watch: async (context) => steps.watch(callScope(context), passOf(context)),
  };
}

/** From the request as the platform made it, never from what the plugin says. */
function passOf({ request }: PlatformCallContext): PassId {
  const { runId, pass } = request.hostContext as { runId?: unknown; pass?: { token?: unknown } };
  if (typeof runId === 'string' && typeof pass?.token === 'string') return { runId, token: pass.token };
  throw new PlatformError(
    'VALIDATION_ERROR',
    "Steps are there in a workflow's function alone; this is another handler.",
  );
}

/** What needs no permission; of other kinds of steps only commands and children are there, and `http` is `ctx.fetch`. */
const FREE = new Set([CODE_STEP, 'wait', 'signal', 'approval']);

function requireUse({ request }: PlatformCallContext, uses: string): void {
  if (FREE.has(uses)) return;
  if (uses === 'workflow') {
    requirePlatform(request, 'workflows');
    return;
  }
  if (!/^(?:@[^/]+\/)?[^@/:]+\/[^/]+$/.test(uses))
    throw new PlatformError('VALIDATION_ERROR', `"${uses}" is no command: name "<plugin>/<command>".`);
  if (pluginOf(uses) !== request.plugin.id) requireInvoke(request, uses);
}
