import type { PartStatus } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { Scope } from '../definition/expressions.ts';
import type { Program } from '../run/program.ts';
import type { JobState, RunState } from '../run/state.ts';
import { isFinal } from '../states.ts';

export const FAILED_STATES: ReadonlySet<string> = new Set<PartStatus>(['failed', 'timed_out']);

/** Returns the combined status of all matrix combinations of a job. Returns null while a combination is unfinished. */
export function resultOf({ groups }: RunState, program: Program, jobId: string): PartStatus | null {
  const jobs = groups.get(jobId);
  if (!jobs?.every(({ record }) => isFinal(record.status))) return null;
  const states = jobs.map(({ record }) => record.status);
  const bad = states.find((status) => FAILED_STATES.has(status));
  if (bad) return program.job(jobId).continueOnError ? 'succeeded' : bad;
  if (states.includes('cancelled')) return 'cancelled';
  return states.every((status) => status === 'skipped') ? 'skipped' : 'succeeded';
}

/**
 * Returns the results and outputs of jobs. In the `outputs` of a matrix job, later combinations overwrite outputs of
 * the same name.
 */
export function needsScope(state: RunState, program: Program, needs: Iterable<string>): Scope['needs'] {
  return Object.fromEntries(
    [...needs].map((id) => {
      const jobs = state.groups.get(id) ?? [];
      const status = resultOf(state, program, id) ?? 'pending';
      const outputs: Record<string, JsonValue> = Object.assign({}, ...jobs.map((job) => job.outputs));
      const matrix = program.job(id)?.matrix
        ? { matrix: jobs.map((job) => ({ values: job.matrix, outputs: job.outputs })) }
        : {};
      return [id, { status, outputs, ...matrix } as JsonValue];
    }),
  );
}

export function stepsScope({ steps }: JobState, program: Program): Scope['steps'] {
  return Object.fromEntries(
    steps
      .filter(({ record }) => record.status !== 'pending')
      .map((step) => {
        const { record, output, error } = step;
        return [
          program.step(step).id,
          { status: record.status, output, error: error as unknown as JsonValue },
        ];
      }),
  );
}
