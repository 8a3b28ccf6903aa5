import { PlatformError } from '../../../kit/errors.ts';
import type {
  AttemptRecord,
  JobRecord,
  LoadedRun,
  RunRecord,
  StartOptions,
  StepRecord,
} from '../../../store/ports/index.ts';
import { type FoundStep, foundIn } from './compile-code.ts';
import type { CompiledWorkflow } from './compiled-workflow.ts';
import { partsOf, type RunParts, type StepPart, stepIdOf } from './run-parts.ts';
import { isFinal } from './states.ts';

type Kept = { jobs: LoadedRun['jobs']; steps: LoadedRun['steps'] };

/** What a run from a step on takes over. Throws VALIDATION_ERROR for a step that is not there, or cannot be begun with. */
export function partsBefore(
  fromStep: string,
  loaded: LoadedRun,
  workflow: CompiledWorkflow,
  attempts: readonly AttemptRecord[],
): NonNullable<StartOptions['parts']> {
  const groups = partsOf(workflow, loaded);
  const start = [...groups.values()]
    .flatMap(({ parts }) => parts ?? [])
    .flatMap(({ steps }) => steps)
    .find((part) => stepIdOf(part) === fromStep);
  if (!start)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The run has no step "${fromStep}"; steps are named "<job>.<step>".`,
    );
  const kept = workflow.code ? beforeInCode(start, loaded.run) : beforeInJobs(start, groups, workflow);
  const taken = new Set(kept.steps.map(({ jobKey, index }) => `${jobKey} ${index}`));
  return { ...kept, attempts: attempts.filter(({ jobKey, index }) => taken.has(`${jobKey} ${index}`)) };
}

/**
 * What code had come to before the step and had ended: well, or so that the code went on all the same. Chance and time stay
 * those that these steps were taken with.
 */
function beforeInCode(start: StepPart, run: RunRecord): Kept {
  const all = start.job.steps.map(({ record }) => ({ record, found: foundIn(record) }));
  const wentOn = ({ branch, place }: FoundStep): boolean =>
    all.some(({ found }) => found.branch === branch && found.place > place);
  const origin = all.map(({ found }) => found.origin).find((taken) => taken !== undefined) ?? {
    seed: run.id,
    startedAt: run.startedAt ?? run.createdAt,
  };
  const steps = all
    .filter(({ record, found }) => {
      if (record.index >= start.record.index || !isFinal(record.status)) return false;
      return record.status === 'succeeded' || wentOn(found);
    })
    .map(
      ({ record, found }): StepRecord => ({
        ...record,
        found: JSON.stringify({ ...found, origin } satisfies FoundStep),
      }),
    );
  return { jobs: [anew(start.job.record)], steps };
}

function anew(job: JobRecord): JobRecord {
  return { ...job, status: 'pending', outputs: null, error: null, startedAt: null, finishedAt: null };
}

/** The steps before it in its job, and every job that does not need that job. */
function beforeInJobs(start: StepPart, groups: RunParts, workflow: CompiledWorkflow): Kept {
  const dependent = new Set([start.job.job.id]);
  for (const job of workflow.jobs) if (job.needs.some((id) => dependent.has(id))) dependent.add(job.id);

  const kept: Kept = { jobs: [], steps: [] };
  for (const { job, parts } of groups.values()) {
    for (const part of parts ?? []) {
      const isOwn = job.id === start.job.job.id;
      const whole = part.record.status === 'succeeded' || part.record.status === 'skipped';
      if (!dependent.has(job.id) && whole) {
        kept.jobs.push(part.record);
        kept.steps.push(
          ...part.steps.filter(({ record }) => isFinal(record.status)).map(({ record }) => record),
        );
      } else if (isOwn && part !== start.job && part.record.status === 'succeeded') {
        // Other combinations of the matrix stay as they are.
        kept.jobs.push(part.record);
        kept.steps.push(...part.steps.map(({ record }) => record));
      } else if (isOwn) {
        kept.jobs.push(anew(part.record));
        if (part !== start.job) continue;
        const before = part.steps.slice(0, start.step.index);
        const broken = before.find(
          ({ record }) => record.status !== 'succeeded' && record.status !== 'skipped',
        );
        if (broken && !broken.step.continueOnError)
          throw new PlatformError(
            'VALIDATION_ERROR',
            `The step "${stepIdOf(broken)}" before it did not succeed; run again from there.`,
          );
        kept.steps.push(...before.map(({ record }) => record));
      }
    }
  }
  return kept;
}
