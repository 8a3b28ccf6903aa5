import { CODE_STEP, type EnterStep, type RunError } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import { type FoundStep, foundIn } from '../definition/compile-code.ts';
import type { CompiledCode } from '../definition/compiled-workflow.ts';
import { formatPath } from '../definition/templates.ts';
import type { RunJournal } from '../run/run-journal.ts';
import { type JobPart, pendingStep, type StepPart, stepPart } from '../run/run-parts.ts';

/** Maximum steps of a run, children not counted. Longer workflows use children, so that replays stay short. */
const MOST_STEPS = 1000;
const MOST_CHILDREN = 10_000;
const CHILD = 'workflow';
const MOST_INPUT_CHARS = 1024 * 1024;

export interface CodeStepsDeps {
  run: RunRecord;
  code: CompiledCode;
  journal: RunJournal;
}

/** Tracks the steps that a function reached: records new ones, and checks known ones against their recorded place. */
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

  /** Reads the stored steps once; `discover` adds later ones. */
  function learn({ steps }: JobPart): void {
    if (byId.size === 0) for (const part of steps) remember(part, foundIn(part.record));
  }

  /** Marks an error that fails the run even if the function catches it. */
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
    /** Returns the requested step. Throws WORKFLOW_DEFINITION_CHANGED when its place holds another one. */
    partOf(job: JobPart, asked: EnterStep): StepPart {
      learn(job);
      const before = byPlace.get(placeOf(asked));
      const namesake = byId.get(asked.id);
      if (before && before === namesake && before.found.uses === asked.uses) return before.part;
      if (!before && !namesake) return discover(job, asked);
      const expected = (before ?? namesake!).found;
      throw forGood(changed(run, nameOf(expected), nameOf(asked), before ? asked : expected));
    },
    /** All steps in the order of their discovery. */
    known(job: JobPart): KnownStep[] {
      learn(job);
      return [...byId.values()];
    },
    /** Whether a ready step lets the function continue. A `ctx.all` continues only when its last item ends. */
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
    /**
     * Returns an error when the function returned without all recorded steps, so its code has changed. `missedId` names
     * a step that was recalled but not requested.
     */
    missedBy(job: JobPart, met: ReadonlySet<StepPart>, missedId?: string): RunError | undefined {
      const missed = job.steps.find((part) => !met.has(part) || part.step.id === missedId);
      if (!missed) return undefined;
      return changedError(missed, 'the end');
    },
    /** Returns an error for a function that never requests the finished step it waits for: its code has changed. */
    strayedFrom(job: JobPart, met: ReadonlySet<StepPart>, missedId?: string): RunError {
      const ended = job.steps.filter(({ record }) => record.endOrder !== null);
      const [missed] = ended.filter((part) => !met.has(part) || part.step.id === missedId).toSorted(byEnd);
      return changedError(missed ?? ended.at(-1)!, 'no such step');
    },
    /** Seed of randomness and time. A rerun keeps those of the run whose steps it took over. */
    origin(job: JobPart): { seed: string; startedAt: number } {
      learn(job);
      const taken = [...byId.values()].find(({ found }) => found.origin !== undefined)?.found.origin;
      return taken ?? { seed: run.id, startedAt: run.startedAt ?? run.createdAt };
    },
  };
}

const byEnd = (a: StepPart, b: StepPart): number => a.record.endOrder! - b.record.endOrder!;

/** A step with the request that created it. */
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
