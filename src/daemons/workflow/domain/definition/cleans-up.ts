import type { CompiledWorkflow } from './compiled-workflow.ts';
import type { Condition } from './templates.ts';

/**
 * Whether a started run may have clean-up work once cancelled: always for code, otherwise if an `if` tests the state.
 */
export function cleansUp({ code, jobs }: Pick<CompiledWorkflow, 'code' | 'jobs'>): boolean {
  if (code) return true;
  return jobs.some(({ condition, steps }) => asks(condition) || steps.some((step) => asks(step.condition)));
}

/** A condition without a state function such as `always()` is false once the run is cancelled. */
const asks = ({ expressions }: Condition): boolean =>
  expressions.some(({ expression }) => expression.asksForState);
