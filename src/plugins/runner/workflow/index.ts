import { CancelledError } from '../../../contracts/cancelled-error.ts';
import type {
  ReadySteps,
  RecalledSteps,
  ReplayContext,
  ReplayEnd,
  StepAnswer,
} from '../../../contracts/index.ts';
import type { PluginContextV3 } from '../../../contracts/plugin-context.ts';
import { messageOf, RunnerFailure } from '../failure.ts';
import type { Handler } from '../handler.ts';
import type { PlatformCalls } from '../platform-calls.ts';
import type { RunnerRequest } from '../protocol.ts';
import { toCommandResult } from '../result.ts';
import { emitter } from '../task-services.ts';
import { runInBranch } from './branches.ts';
import { createWorkflowContext } from './context.ts';
import { keptText } from './kept.ts';
import { Replay } from './replay.ts';
import type { ReplayLink } from './replay-link.ts';
import { faultOf, WorkflowStepError } from './step-failure.ts';

/** Connects a replay to its workflow run. Throws HOST_MISMATCH if the caller is not a workflow run. */
export function workflowLink(
  { hostContext, handler }: RunnerRequest,
  signal: AbortSignal,
  calls: PlatformCalls,
  executionId: string,
): ReplayLink {
  const replay = hostContext.pass as ReplayContext | undefined;
  if (!replay)
    throw new RunnerFailure(
      'HOST_MISMATCH',
      `"${handler}" is a workflow: it is listed under "workflows" of the manifest and started as a run, never called as a step.`,
      { expected: 'workflows', received: 'a step' },
    );
  const call = (method: string, ...args: unknown[]) => calls.call(executionId, 'steps', method, args);
  return {
    replay,
    signal,
    begin: () => call('begin'),
    recall: (after) => call('recall', after) as Promise<RecalledSteps>,
    enter: (step) => call('enter', step) as Promise<StepAnswer>,
    settle: (step) => call('settle', step) as Promise<StepAnswer>,
    watch: () => call('watch') as Promise<ReadySteps>,
    emitter: (placeOf) => emitter(calls, executionId, placeOf),
  };
}

/**
 * Runs a workflow function from its start and replays recorded steps. The function's result or error ends the run. If
 * every branch waits, the replay ends, and a later replay continues the run.
 */
export async function runWorkflow(
  { ref, workflow, execute }: Handler,
  base: PluginContextV3,
  input: unknown,
  link: ReplayLink,
): Promise<ReplayEnd> {
  const { workflowId } = base.hostContext;
  if (workflow!.id !== workflowId)
    throw new RunnerFailure(
      'INVALID_HANDLER',
      `"${ref}" defines the workflow "${String(workflow!.id)}", and the manifest names it as the handler of "${String(workflowId)}": both ids must be the same.`,
      { ref },
    );
  try {
    const begun = link.begin();
    if (link.replay.marksBegin) await begun;
    else begun.catch(() => {});
  } catch (error) {
    return { end: 'broke', message: `The workflow's run cannot be reached: ${messageOf(error)}` };
  }
  const replay = new Replay(link);
  const { context, unstarted } = createWorkflowContext(base, replay, link, workflow!);

  async function goThrough(): Promise<ReplayEnd> {
    try {
      if (link.replay.recalls) await replay.recall();
      const returned = await runInBranch(replay.trunk, () => execute(context, input));
      requireAllAwaited(unstarted(), replay.unfinished);
      return endOf(returned, replay.missed);
    } catch (thrown) {
      if (!FORESEEN.some((kind) => thrown instanceof kind))
        base.log.error(`The workflow's function threw: ${messageOf(thrown)}`, { stack: stackOf(thrown) });
      return threw(thrown);
    }
  }
  try {
    return await Promise.race([goThrough(), replay.halted]);
  } finally {
    replay.close();
  }
}

const FORESEEN = [CancelledError, WorkflowStepError, RunnerFailure];

function endOf(returned: unknown, missed: string | undefined): ReplayEnd {
  const { exitCode, result, error } = toCommandResult(returned);
  if (exitCode === 0)
    return { end: 'returned', output: JSON.parse(keptText(result, 'What the workflow returned')), missed };
  const message = error?.message ?? `The workflow ended with exit code ${exitCode}.`;
  return {
    end: 'threw',
    error: { code: error?.code ?? 'EXECUTION_ERROR', message, details: error?.details ?? {} },
  };
}

function threw(thrown: unknown): ReplayEnd {
  const { error } = faultOf(thrown);
  if (thrown instanceof CancelledError) return { end: 'threw', error, cancelled: true };
  if (thrown instanceof WorkflowStepError) return { end: 'threw', error, step: thrown.step };
  // The error of a workflow function is not a step failure, so the code STEP_FAILED is replaced.
  return {
    end: 'threw',
    error: error.code === 'STEP_FAILED' ? { ...error, code: 'EXECUTION_ERROR' } : error,
  };
}

/** Throws if a step was not awaited. The end of the workflow function would interrupt the step. */
function requireAllAwaited(unstarted: readonly string[], unfinished: string | undefined): void {
  const [first] = unstarted;
  if (first === undefined && unfinished === undefined) return;
  const what =
    first === undefined
      ? `The step "${unfinished}" was started but not awaited to its end`
      : `${unstarted.map((name) => `"${name}"`).join(', ')} ${unstarted.length === 1 ? 'was' : 'were'} created but never awaited, so it did not run`;
  throw new RunnerFailure('VALIDATION_ERROR', `${what}: await each step before the function returns.`, {
    steps: first === undefined ? [unfinished] : unstarted,
  });
}

function stackOf(thrown: unknown): string | undefined {
  return thrown instanceof Error ? thrown.stack?.slice(0, 4000) : undefined;
}
