import type { CompiledWorkflow } from './compiled-workflow.ts';
import type { Condition } from './templates.ts';

/** Whether a started run of it may have something to do once it is cancelled: its code decides, or the `if` of a step or job. */
export function cleansUp({ code, jobs }: Pick<CompiledWorkflow, 'code' | 'jobs'>): boolean {
  if (code) return true;
  return jobs.some(({ condition, steps }) => asks(condition) || steps.some((step) => asks(step.condition)));
}

/** Without `always()` or its like a condition does not hold once the run is cancelled. */
const asks = ({ expressions }: Condition): boolean =>
  expressions.some(({ expression }) => expression.asksForState);
