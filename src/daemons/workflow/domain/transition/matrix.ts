import type { JsonValue } from '../../../../store/ports/index.ts';
import { type CompiledJob, MAX_STEPS } from '../definition/compiled-workflow.ts';
import type { Scope } from '../definition/expressions.ts';
import { evaluationFailure } from '../run/failure.ts';
import { type JobState, newJob } from '../run/state.ts';
import { setJob } from './records.ts';
import { resultOf } from './results.ts';
import { scopeOf } from './scopes.ts';
import type { Evaluated, Turn } from './turn.ts';

const MAX_COMBINATIONS = 256;

/**
 * Evaluates the `if` of the job and expands its matrix. Returns undefined while a dependency or an evaluation is
 * unfinished.
 */
export function unfold(turn: Turn, job: CompiledJob): JobState[] | undefined {
  const { state } = turn;
  const seen = seenByJob(turn, job);
  if (seen === undefined) return undefined;
  const single = newJob(job, job.id, null);
  const holds = groupHolds(turn, job, single, seen);
  if (!holds) return undefined;
  if ('failure' in holds) return failedGroup(turn, single, holds.failure);
  if (!holds.value) {
    state.groups.set(job.id, [single]);
    setJob(turn, single, state.ending ? 'cancelled' : 'skipped');
    return [single];
  }
  const target = { of: 'job.matrix', job: job.id } as const;
  const matrix = job.matrix
    ? turn.ask(`matrix ${job.id}`, job.matrix, target, () => scopeOf(turn, single, seen))
    : null;
  if (matrix === undefined) return undefined;
  if (matrix && 'failure' in matrix) return failedGroup(turn, single, matrix.failure);
  try {
    return expand(turn, job, single, matrix && (matrix.value as Record<string, JsonValue>));
  } catch (error) {
    return failedGroup(turn, single, evaluationFailure(error));
  }
}

/** Returns whether the `if` of a job is true. Returns undefined while a worker thread evaluates the `if`. */
export function groupHolds(
  turn: Turn,
  job: CompiledJob,
  single: JobState,
  seen: Scope['state'],
): Evaluated<boolean> | undefined {
  const id = turn.state.ending ? `if ${job.id} ending` : `if ${job.id}`;
  const target = { of: 'job.if', job: job.id } as const;
  return turn.ask(id, job.condition, target, () => scopeOf(turn, single, seen));
}

/** Returns the run state for the `if` of a job. Returns undefined while a dependency of the job is unfinished. */
function seenByJob({ state, program }: Turn, { needs }: CompiledJob): Scope['state'] | undefined {
  const results = needs.map((id) => resultOf(state, program, id));
  if (results.includes(null)) return undefined;
  if (state.ending || results.includes('cancelled')) return 'cancelled';
  if (results.some((result) => result === 'failed' || result === 'timed_out')) return 'failure';
  return results.includes('skipped') ? 'skipped' : 'success';
}

function failedGroup(
  turn: Turn,
  single: JobState,
  { error }: ReturnType<typeof evaluationFailure>,
): JobState[] {
  turn.state.groups.set(single.record.jobId, [single]);
  setJob(turn, single, 'failed', error);
  return [single];
}

function expand(
  turn: Turn,
  job: CompiledJob,
  single: JobState,
  matrix: Record<string, JsonValue> | null,
): JobState[] {
  const all = matrix && combinations(matrix);
  requireRoom(turn, (all?.length ?? 1) * job.steps.length);
  const jobs = all?.map((values, index) => newJob(job, `${job.id}:${index}`, values)) ?? [single];
  if (jobs.length === 0) {
    turn.state.groups.set(job.id, [single]);
    setJob(turn, single, 'skipped');
    return [single];
  }
  turn.state.groups.set(job.id, jobs);
  // Pending combinations are stored too, so that a resumed run has the same combinations.
  if (all) for (const one of jobs) turn.touchJob(one);
  return jobs;
}

/**
 * Throws if an expanded matrix would give the run more than MAX_STEPS steps. Even a small definition can exceed this
 * limit.
 */
function requireRoom({ state, program }: Turn, more: number): void {
  let known = 0;
  for (const [id, jobs] of state.groups) known += (jobs?.length ?? 0) * program.job(id).steps.length;
  if (known + more > MAX_STEPS)
    throw new Error(`the run would have ${known + more} steps with it; ${MAX_STEPS} are the most`);
}

/** Returns all combinations of the matrix values. The values of the first list vary slowest. */
function combinations(matrix: Record<string, JsonValue>): Array<Record<string, JsonValue>> {
  let all: Array<Record<string, JsonValue>> = [{}];
  for (const [name, values] of Object.entries(matrix)) {
    if (!Array.isArray(values))
      throw new Error(`matrix.${name} must be a list, not ${JSON.stringify(values)}`);
    all = all.flatMap((one) => values.map((value) => ({ ...one, [name]: value })));
    if (all.length > MAX_COMBINATIONS)
      throw new Error(`the matrix has more than ${MAX_COMBINATIONS} combinations`);
  }
  return all;
}
