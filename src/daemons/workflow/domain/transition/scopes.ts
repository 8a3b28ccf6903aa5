import type { JsonValue } from '../../../../store/ports/index.ts';
import { CODE_JOB } from '../definition/compile-code.ts';
import type { Scope } from '../definition/expressions.ts';
import type { JobState, RunState } from '../run/state.ts';
import { needsScope, stepsScope } from './results.ts';
import type { Evaluated, Turn } from './turn.ts';

/** Returns the scope in which the expressions of a job are evaluated. */
export function scopeOf({ state, program }: Turn, job: JobState, seen: Scope['state']): Scope {
  return {
    input: state.input,
    run: runScope(state),
    matrix: job.matrix,
    steps: stepsScope(job, program),
    needs: needsScope(state, program, program.job(job.record.key).needs),
    jobs: {},
    state: seen,
  };
}

/** Returns the run state for the expressions in the steps of a job. */
export function seenBy({ record, failed }: JobState): Scope['state'] {
  if (record.ending) return 'cancelled';
  return failed ? 'failure' : 'success';
}

/** Returns the output of the run. Returns undefined while a worker thread evaluates the output. */
export function runOutput(turn: Turn): Evaluated<JsonValue> | undefined {
  const { state, program } = turn;
  const { code, outputs: template } = program.workflow;
  if (code) return { value: state.groups.get(CODE_JOB)?.[0]?.outputs.result ?? null };
  const ids = [...state.groups.keys()];
  const jobs = needsScope(state, program, ids);
  if (template)
    return turn.ask('outputs', template, { of: 'run.outputs' }, () => ({
      ...{ input: state.input, run: runScope(state), matrix: {}, steps: {}, needs: {} },
      ...{ jobs, state: 'success' },
    }));
  const outputs = jobs as Record<string, { outputs: Record<string, JsonValue> }>;
  const withSome = ids.filter((id) => Object.keys(outputs[id]!.outputs).length > 0);
  const value = withSome.map((id) => [id, outputs[id]!.outputs] as const);
  return { value: value.length === 0 ? null : Object.fromEntries(value) };
}

function runScope({ run }: RunState): Scope['run'] {
  const { id, workflowId, tenantId, createdAt, trigger, priority, depth } = run;
  return { id, workflowId, tenantId, createdAt, trigger, priority, depth };
}
