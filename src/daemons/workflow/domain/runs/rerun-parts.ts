import { PlatformError } from '../../../../kit/errors/errors.ts';
import type {
  AttemptRecord,
  JobRecord,
  LoadedRun,
  RunRecord,
  StartOptions,
  StepRecord,
} from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { type FoundStep, foundIn } from '../definition/found-step.ts';
import { type JobPart, type RunParts, type StepPart, stepIdOf, stepsOf } from '../run/parts.ts';
import { isFinal } from '../states.ts';
import { FAILED_STATES } from '../transition/results.ts';

type Kept = { jobs: LoadedRun['jobs']; steps: LoadedRun['steps'] };

export interface RerunFrom {
  /** Id of the first step to repeat, in the form `<job>.<step>`. */
  fromStep: string;
  /** Whether the rerun has another input. Only results that the step depends on are then reused, and no approvals. */
  hasOtherInput: boolean;
}

/**
 * Returns the jobs and steps that a rerun reuses from the original run. Throws VALIDATION_ERROR if `fromStep` is
 * unknown, if an earlier step of its job failed without `continueOnError`, or if an approval would count for another
 * input.
 */
export function partsBefore(
  { fromStep, hasOtherInput }: RerunFrom,
  groups: RunParts,
  run: RunRecord,
  workflow: CompiledWorkflow,
  attempts: readonly AttemptRecord[],
): NonNullable<StartOptions['parts']> {
  const start = stepsOf(groups).find((part) => stepIdOf(part) === fromStep);
  if (!start)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The run has no step "${fromStep}"; steps are named "<job>.<step>".`,
    );
  const kept = workflow.code
    ? beforeInCode(start, run)
    : beforeInJobs(start, groups, workflow, hasOtherInput ? neededBy(start, workflow) : undefined);
  if (hasOtherInput) refuseApprovals(kept, groups);
  const taken = new Set(kept.steps.map(({ jobKey, index }) => `${jobKey} ${index}`));
  return { ...kept, attempts: attempts.filter(({ jobKey, index }) => taken.has(`${jobKey} ${index}`)) };
}

/**
 * Throws VALIDATION_ERROR if an approval is kept, because it was decided for the earlier input. Skipped approvals are
 * refused too: the condition that skipped them can depend on the input.
 */
function refuseApprovals(kept: Kept, groups: RunParts): void {
  const steps = new Set(kept.steps.map(({ jobKey, index }) => `${jobKey} ${index}`));
  const endedJobs = new Set(kept.jobs.filter(({ status }) => isFinal(status)).map(({ key }) => key));
  const approval = stepsOf(groups).find(
    ({ record: { jobKey, index }, step }) =>
      step.uses === 'approval' && (steps.has(`${jobKey} ${index}`) || endedJobs.has(jobKey)),
  );
  if (!approval) return;
  const id = stepIdOf(approval);
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The approval "${id}" was decided or skipped for the earlier input, so it does not count for another input. Run again from "${id}" or an earlier step.`,
  );
}

/**
 * From the steps before `start`, returns the succeeded steps and the steps whose failure the code handled. The rerun
 * reuses the random seed and start time of the original run.
 */
function beforeInCode(start: StepPart, run: RunRecord): Kept {
  const all = start.job.steps.map(({ record }) => ({ record, found: foundIn(record) }));
  const wentOn = (record: StepRecord, { branch }: FoundStep): boolean =>
    all.some((other) => other.record.index > record.index && !areSideBySide(branch, other.found.branch));
  const cancelled = all.filter(({ record }) => record.status === 'cancelled');
  const cancelledAt = Math.min(...cancelled.map(({ record }) => record.index));
  const origin = all.map(({ found }) => found.origin).find((taken) => taken !== undefined) ?? {
    seed: run.id,
    startedAt: run.startedAt ?? run.createdAt,
  };
  const steps = all
    .filter(({ record, found }) => {
      if (record.index >= start.record.index || !isFinal(record.status)) return false;
      // Cancelled steps and later clean-up steps are left out, because the rerun was not cancelled.
      if (record.status === 'cancelled' || (found.cleanUp && record.index > cancelledAt)) return false;
      return record.status === 'succeeded' || wentOn(record, found);
    })
    .toSorted((a, b) => a.record.endOrder! - b.record.endOrder!)
    .map(
      ({ record, found }, index): StepRecord => ({
        ...record,
        endOrder: index + 1,
        found: JSON.stringify({ ...found, origin } satisfies FoundStep),
      }),
    );
  return { jobs: [anew(start.job.record)], steps };
}

/**
 * Returns whether two branches belong to different items of the same `ctx.all` call. For example, `1-0.2-1` and `1-3`
 * belong to the items 0 and 3 of call 1.
 */
function areSideBySide(one: string, other: string): boolean {
  const others = other.split('.');
  for (const [depth, item] of one.split('.').entries()) {
    if (item === others[depth]) continue;
    return item !== '' && others[depth]?.split('-')[0] === item.split('-')[0];
  }
  return false;
}

function anew(job: JobRecord): JobRecord {
  return {
    ...job,
    ...{ status: 'pending', outputs: null, error: null, startedAt: null, finishedAt: null },
    ...{ ending: null, endingAt: null, endingHeldAt: null },
  };
}

/** Returns the ids of the job of a step and of all jobs that it needs, directly or indirectly. */
function neededBy({ job: { job } }: StepPart, { jobs }: CompiledWorkflow): ReadonlySet<string> {
  const needed = new Set([job.id]);
  // Each job of a set is visited once, also those that are added during the iteration.
  for (const id of needed) for (const other of jobs.find((one) => one.id === id)!.needs) needed.add(other);
  return needed;
}

/**
 * Returns the completed jobs that do not depend on a repeated job. Also returns the completed steps of repeated jobs
 * before the first step to repeat. If `needed` is given, nothing of other jobs is returned, and nothing of other
 * combinations of the step's matrix.
 */
function beforeInJobs(
  start: StepPart,
  groups: RunParts,
  workflow: CompiledWorkflow,
  needed?: ReadonlySet<string>,
): Kept {
  const own = start.job.job.id;
  const broken = new Set([own]);
  for (const { job, parts } of groups.values()) if (!parts?.every(isDone)) broken.add(job.id);
  const dependent = new Set<string>();
  for (const job of workflow.jobs)
    if (job.needs.some((id) => broken.has(id) || dependent.has(id))) dependent.add(job.id);

  const kept: Kept = { jobs: [], steps: [] };
  for (const { job, parts } of groups.values()) {
    // A dependent job runs again, because its inputs can change in the rerun.
    if ((dependent.has(job.id) && job.id !== own) || needed?.has(job.id) === false) continue;
    for (const part of parts ?? []) {
      if (needed && job.id === own && part !== start.job) kept.jobs.push(anew(part.record));
      else if (part !== start.job && isDone(part)) {
        kept.jobs.push(part.record);
        kept.steps.push(
          ...part.steps.filter(({ record }) => isFinal(record.status)).map(({ record }) => record),
        );
      } else {
        kept.jobs.push(anew(part.record));
        kept.steps.push(...(part === start.job ? stepsBefore(start) : wholeSteps(part.steps)));
      }
    }
  }
  return kept;
}

/** Returns whether the job succeeded, was skipped, or failed with `continueOnError`. */
const isDone = ({ record: { status }, job }: JobPart): boolean =>
  isWhole(status) || (job.continueOnError && FAILED_STATES.has(status));

const isWhole = (status: JobRecord['status']): boolean => status === 'succeeded' || status === 'skipped';

/**
 * Returns the steps before the start step. Throws VALIDATION_ERROR if one of these steps failed without
 * `continueOnError`.
 */
function stepsBefore({ job, step }: StepPart): StepRecord[] {
  const before = job.steps.slice(0, step.index);
  const broken = before.find((part) => !isWhole(part.record.status) && !part.step.continueOnError);
  if (broken)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The step "${stepIdOf(broken)}" before it did not succeed; run again from there.`,
    );
  return before.map(({ record }) => record);
}

/** Returns the steps before the first failed step, so that completed work is not repeated. */
function wholeSteps(steps: readonly StepPart[]): StepRecord[] {
  const first = steps.findIndex(
    ({ record, step }) =>
      !isWhole(record.status) && !(step.continueOnError && FAILED_STATES.has(record.status)),
  );
  return steps.slice(0, first === -1 ? steps.length : first).map(({ record }) => record);
}
