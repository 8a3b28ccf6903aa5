import type { CompiledWorkflow } from './compiled-workflow.ts';
import type { Condition } from './templates.ts';

/**
 * Returns whether a started run can have clean-up work after a cancellation. A definition needs an `if` with a state
 * function such as `always()`. A workflow written in code can always have clean-up work.
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
