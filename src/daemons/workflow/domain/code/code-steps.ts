import { CODE_STEP, type EnterStep, type RunError } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import { type FoundStep, foundIn } from '../definition/compile-code.ts';
import type { CompiledCode } from '../definition/compiled-workflow.ts';
import { formatPath } from '../definition/templates.ts';
import type { RunJournal } from '../run/run-journal.ts';
import { type JobPart, pendingStep, type StepPart, stepPart } from '../run/run-parts.ts';

/** Steps of one run but its children. More belong into those, which keeps every pass short. */
const MOST_STEPS = 1000;
const MOST_CHILDREN = 10_000;
const CHILD = 'workflow';
const MOST_INPUT_CHARS = 1024 * 1024;

export interface CodeStepsDeps {
  run: RunRecord;
  code: CompiledCode;
  journal: RunJournal;
}

/** The steps that a function came to: known by name, held against their place, and new ones taken down. */
export function createCodeSteps({ run, code, journal }: CodeStepsDeps) {
  const fatal = new WeakSet<PlatformError>();
  const byPlace = new Map<string, KnownStep>();
  const byId = new Map<string, KnownStep>();
  const forks = new Map<StepPart, string>();
  const counts = { steps: 0, children: 0 };

  function remember(part: StepPart, found: FoundStep): void {
    const known = { part, found };
    if (found.uses === CHILD) counts.children++;
    else counts.steps++;
    byPlace.set(placeOf(found), known);
    byId.set(found.id, known);
    if (found.joint) forks.set(part, found.branch.slice(0, found.branch.lastIndexOf('-')));
  }

  /** Once: from then on `discover` adds to it. */
  function learn({ steps }: JobPart): void {
    if (byId.size === 0) for (const part of steps) remember(part, foundIn(part.record));
  }

  /** A run that this happens to has failed, whatever its function makes of the error. */
  function forGood(error: PlatformError): PlatformError {
    fatal.add(error);
    return error;
  }

  function discover(job: JobPart, asked: EnterStep): StepPart {
    requireRoom(asked);
    if (JSON.stringify(asked.with).length > MOST_INPUT_CHARS)
      throw new PlatformError(
        'PAYLOAD_TOO_LARGE',
        `What the step "${asked.id}" is given takes more than ${MOST_INPUT_CHARS} characters as JSON.`,
      );
    const index = (job.steps.at(-1)?.record.index ?? -1) + 1;
    const step = code.stepOf(asked, index);
    const [issue] = step.kind.check(step.rawWith);
    if (issue)
      throw new PlatformError(
        'VALIDATION_ERROR',
        `The step "${asked.id}": ${formatPath(issue.path) || 'its input'} ${issue.message}.`,
      );
    const record = { ...pendingStep(job.record.key, index), found: JSON.stringify(asked) };
    const part = stepPart(job, step, record);
    job.steps.push(part);
    journal.touch(part);
    remember(part, asked);
    return part;
  }

  function requireRoom({ uses }: EnterStep): void {
    const [count, most, what] =
      uses === CHILD
        ? [counts.children, MOST_CHILDREN, 'children']
        : [counts.steps, MOST_STEPS, 'steps beside its children'];
    if (count < most) return;
    throw forGood(
      new PlatformError(
        'VALIDATION_ERROR',
        `The run has come to ${most} ${what}, which is the most there may be. Give parts of the work to workflows of their own with ctx.runWorkflow.`,
        { details: { steps: count } },
      ),
    );
  }

  function changedError({ record }: StepPart, comesTo: string): RunError {
    const before = foundIn(record);
    const { code: name, message, details } = changed(run, nameOf(before), comesTo, before);
    return { code: name, message, details };
  }

  return {
    isFatal: (error: PlatformError) => fatal.has(error),
    /** The step that is asked for. Throws WORKFLOW_DEFINITION_CHANGED when another one has its place. */
    partOf(job: JobPart, asked: EnterStep): StepPart {
      learn(job);
      const before = byPlace.get(placeOf(asked));
      const namesake = byId.get(asked.id);
      if (before && before === namesake && before.found.uses === asked.uses) return before.part;
      if (!before && !namesake) return discover(job, asked);
      const expected = (before ?? namesake!).found;
      throw forGood(changed(run, nameOf(expected), nameOf(asked), before ? asked : expected));
    },
    /** All of them, in the order in which they were found. */
    known(job: JobPart): KnownStep[] {
      learn(job);
      return [...byId.values()];
    },
    /** Whether one of the steps lets the function go on: of the items of a `ctx.all` the last to end does. */
    canGoOn(owed: Iterable<StepPart>, isReady: (part: StepPart) => boolean): boolean {
      const open = new Set<string>();
      const ready: Array<string | undefined> = [];
      for (const part of owed) {
        learn(part.job);
        const fork = forks.get(part);
        if (isReady(part)) ready.push(fork);
        else if (fork !== undefined) open.add(fork);
      }
      return ready.some((fork) => fork === undefined || !open.has(fork));
    },
    /** Why a function that has returned cannot have been the one that took these steps. `missedId`: it was told of, and not met. */
    missedBy(job: JobPart, met: ReadonlySet<StepPart>, missedId?: string): RunError | undefined {
      const missed = job.steps.find((part) => !met.has(part) || part.step.id === missedId);
      if (!missed) return undefined;
      return changedError(missed, 'the end');
    },
    /** Why a function that waits for the end of a step, and never comes to it, cannot have been the one that took it. */
    strayedFrom(job: JobPart, met: ReadonlySet<StepPart>, missedId?: string): RunError {
      const ended = job.steps.filter(({ record }) => record.endOrder !== null);
      const [missed] = ended.filter((part) => !met.has(part) || part.step.id === missedId).toSorted(byEnd);
      return changedError(missed ?? ended.at(-1)!, 'no such step');
    },
    /** What chance and time begin with: those of the run whose first steps were taken over, if they were. */
    origin(job: JobPart): { seed: string; startedAt: number } {
      learn(job);
      const taken = [...byId.values()].find(({ found }) => found.origin !== undefined)?.found.origin;
      return taken ?? { seed: run.id, startedAt: run.startedAt ?? run.createdAt };
    },
  };
}

const byEnd = (a: StepPart, b: StepPart): number => a.record.endOrder! - b.record.endOrder!;

/** A step that the function came to, as it asked for it. */
export interface KnownStep {
  part: StepPart;
  found: FoundStep;
}

function placeOf({ branch, place }: Pick<FoundStep, 'branch' | 'place'>): string {
  return `${place} ${branch}`;
}

function nameOf({ id, uses }: Pick<FoundStep, 'id' | 'uses'>): string {
  return uses === CODE_STEP ? `step "${id}"` : `step "${id}" (${uses})`;
}

function changed(
  run: RunRecord,
  expected: string,
  found: string,
  { branch, place }: Pick<FoundStep, 'branch' | 'place'>,
): PlatformError {
  const where = branch === '' ? '' : ` of branch ${branch}`;
  return new PlatformError(
    'WORKFLOW_DEFINITION_CHANGED',
    `The code of the workflow "${run.workflowId}" changed under this run: at place ${place + 1}${where} it had taken ${expected}, and now comes to ${found}. Run it again from a step with the new code, or bring the old code back.`,
    { details: { expected, found, branch, place } },
  );
}
