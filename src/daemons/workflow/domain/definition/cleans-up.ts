import type { CompiledWorkflow } from './compiled-workflow.ts';
import type { Condition } from './templates.ts';

/**
 * Returns whether a started run can have clean-up work after a cancellation. Such work is possible in workflows written
 * in code, and in other workflows with an `if` that calls a state function such as `always()`.
 */
export function cleansUp({ code, jobs }: Pick<CompiledWorkflow, 'code' | 'jobs'>): boolean {
  if (code) return true;
  return jobs.some(({ condition, steps }) => asks(condition) || steps.some((step) => asks(step.condition)));
}

/**
 * Returns whether a condition calls a state function such as `always()`. Any other condition is false for a cancelled
 * run.
 */
const asks = ({ expressions }: Condition): boolean =>
  expressions.some(({ expression }) => expression.asksForState);
