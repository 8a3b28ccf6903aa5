import type { JsonValue, RunRecord } from '../../../../store/ports/index.ts';
import { CODE_JOB } from '../definition/compile-code.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import type { Scope } from '../definition/expressions.ts';
import type { RunEvaluations } from './run-evaluations.ts';
import { type JobPart, needsScope, type RunParts, stepsScope } from './run-parts.ts';

export type RunScopes = ReturnType<typeof createRunScopes>;

/** Builds the scopes in which a run's expressions are evaluated. */
export function createRunScopes(run: RunRecord, workflow: CompiledWorkflow, groups: RunParts) {
  const input: JsonValue = JSON.parse(run.input);
  const runScope = {
    id: run.id,
    workflowId: run.workflowId,
    tenantId: run.tenantId,
    createdAt: run.createdAt,
    trigger: run.trigger,
    priority: run.priority,
    depth: run.depth,
  };

  function scopeOf(part: JobPart, state: Scope['state']): Scope {
    return {
      input,
      run: runScope,
      matrix: part.matrix,
      steps: stepsScope(part),
      needs: needsScope(groups, part.job.needs),
      jobs: {},
      state,
    };
  }

  const stateOf = (part: JobPart): Scope['state'] =>
    part.record.ending ? 'cancelled' : part.failed ? 'failure' : 'success';

  /**
   * Returns the run's output: the result of its code, the definition's `outputs`, or else the outputs of all jobs that
   * have some. Undefined while a thread evaluates it.
   */
  function outputOf(evaluations: RunEvaluations): { value: JsonValue } | undefined {
    const ids = [...groups.keys()];
    if (workflow.code) return { value: groups.get(CODE_JOB)?.parts?.[0]?.outputs.result ?? null };
    if (workflow.outputs) {
      const jobs = needsScope(groups, ids);
      return evaluations.ask(run, workflow.outputs, () => ({
        input,
        run: runScope,
        matrix: {},
        steps: {},
        needs: {},
        jobs,
        state: 'success',
      }));
    }
    const outputs = needsScope(groups, ids) as Record<string, { outputs: Record<string, JsonValue> }>;
    const withSome = ids.filter((id) => Object.keys(outputs[id]!.outputs).length > 0);
    const value = withSome.map((id) => [id, outputs[id]!.outputs] as const);
    return { value: value.length === 0 ? null : Object.fromEntries(value) };
  }

  return { scopeOf, stateOf, outputOf };
}
