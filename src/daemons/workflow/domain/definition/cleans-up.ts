import type { CompiledWorkflow } from './compiled-workflow.ts';
import type { Condition } from './templates.ts';

/**
 * Returns whether a started run may have clean-up work once it is cancelled. A workflow in code always may; others
 * only if an `if` tests the run's state.
 */
export function cleansUp({ code, jobs }: Pick<CompiledWorkflow, 'code' | 'jobs'>): boolean {
  if (code) return true;
  return jobs.some(({ condition, steps }) => asks(condition) || steps.some((step) => asks(step.condition)));
}

/**
 * Returns whether a condition calls a state function such as `always()`. Any other is false once the run is cancelled.
 */
const asks = ({ expressions }: Condition): boolean =>
  expressions.some(({ expression }) => expression.asksForState);
