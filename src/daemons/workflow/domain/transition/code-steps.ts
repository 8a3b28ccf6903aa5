import { CODE_STEP, type EnterStep, type RunError } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import { type FoundStep, foundIn } from '../definition/found-step.ts';
import { formatPath } from '../definition/templates.ts';
import type { CodeState } from '../run/code-state.ts';
import { CHILD, type KnownSteps, placeOf, rememberStep } from '../run/known-steps.ts';
import { pendingStep } from '../run/parts.ts';
import type { Program } from '../run/program.ts';
import { type JobState, newStepState, type RunState, type StepState, stepAtIndex } from '../run/state.ts';

/**
 * Maximum number of steps in a run, excluding child runs. Longer workflows must use child runs, so that replays stay
 * short.
 */
const MAX_STEPS = 1000;
const MAX_CHILDREN = 10_000;
const MAX_INPUT_CHARS = 1024 * 1024;

/**
 * The requested step, or the error of the request. A fatal error fails the run even if the function catches the error.
 */
export type EnteredStep = { step: StepState; isNew: boolean } | { error: RunError; isFatal: boolean };

/**
 * Returns the requested step. Returns an error if the record has a different step at this point, because the code has
 * then changed.
 */
export function enteredStep(
  { run, code }: RunState,
  program: Program,
  job: JobState,
  requested: EnterStep,
): EnteredStep {
  const { known } = code!;
  const here = known.byPlace.get(placeOf(requested));
  const namesake = known.byId.get(requested.id);
  if (here === undefined && namesake === undefined) return discover(known, program, job, requested);
  const expected = known.found.get(here ?? namesake!)!;
  if (here !== undefined && here === namesake && expected.uses === requested.uses)
    return { step: stepAtIndex(job, here), isNew: false };
  const at = here === undefined ? expected : requested;
  return { error: changed(run, nameOf(expected), nameOf(requested), at), isFatal: true };
}

function discover(known: KnownSteps, program: Program, job: JobState, requested: EnterStep): EnteredStep {
  const full = fullError(known, requested);
  if (full) return { error: full, isFatal: true };
  if (JSON.stringify(requested.with).length > MAX_INPUT_CHARS)
    return refused(
      'PAYLOAD_TOO_LARGE',
      `The input of the step "${requested.id}" takes more than ${MAX_INPUT_CHARS} characters as JSON. Store large data elsewhere and pass a reference.`,
    );
  const index = (job.steps.at(-1)?.record.index ?? -1) + 1;
  const record = { ...pendingStep(job.record.key, index), found: JSON.stringify(requested) };
  try {
    const { kind, rawWith } = program.step({ record });
    const [issue] = kind.check(rawWith);
    if (issue) {
      program.forget(index);
      const what = formatPath(issue.path) || 'its input';
      return refused('VALIDATION_ERROR', `The step "${requested.id}": ${what} ${issue.message}.`);
    }
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    return { error: { code: error.code, message: error.message, details: error.details }, isFatal: false };
  }
  const step = newStepState(record);
  job.steps.push(step);
  rememberStep(known, index, requested);
  return { step, isNew: true };
}

function refused(code: string, message: string): EnteredStep {
  return { error: { code, message, details: {} }, isFatal: false };
}

function fullError({ steps, children }: KnownSteps, { uses }: EnterStep): RunError | undefined {
  const [count, max, what] =
    uses === CHILD ? [children, MAX_CHILDREN, 'children'] : [steps, MAX_STEPS, 'steps beside its children'];
  if (count < max) return undefined;
  return {
    code: 'VALIDATION_ERROR',
    message: `The run has come to ${max} ${what}, which is the most there may be. Give parts of the work to workflows of their own with ctx.runWorkflow.`,
    details: { steps: count },
  };
}

/**
 * Returns whether any awaited step lets the function continue. A `ctx.all` call continues only after its last open item
 * is ready.
 */
export function canContinue(
  { known, awaitedSteps }: CodeState,
  isReady: (index: number) => boolean,
): boolean {
  const open = new Set<string>();
  const ready: Array<string | undefined> = [];
  for (const index of awaitedSteps) {
    const fork = known.forks.get(index);
    if (isReady(index)) ready.push(fork);
    else if (fork !== undefined) open.add(fork);
  }
  return ready.some((fork) => fork === undefined || !open.has(fork));
}

/**
 * Returns an error if the function returned without requesting all recorded steps, because the code has then changed.
 * `missedId` is the id of a recorded step that was not requested.
 */
export function missedError(
  run: RunRecord,
  { steps }: JobState,
  reached: ReadonlySet<number>,
  missedId?: string,
): RunError | undefined {
  const missed = steps.find((step) => isMissed(step, reached, missedId));
  return missed && changedError(run, missed, 'the end');
}

/**
 * Returns the error for a function that waits although a step ended that the function never requested. The code has
 * then changed.
 */
export function strayedError(
  run: RunRecord,
  { steps }: JobState,
  reached: ReadonlySet<number>,
  missedId?: string,
): RunError {
  const ended = steps.filter(({ record }) => record.endOrder !== null);
  const [missed] = ended
    .filter((step) => isMissed(step, reached, missedId))
    .toSorted((a, b) => a.record.endOrder! - b.record.endOrder!);
  return changedError(run, missed ?? ended.at(-1)!, 'no such step');
}

function isMissed(
  { record }: StepState,
  reached: ReadonlySet<number>,
  missedId: string | undefined,
): boolean {
  return !reached.has(record.index) || (missedId !== undefined && foundIn(record).id === missedId);
}

/** Returns the random seed and the start time of a replay. A rerun uses the values of the original run. */
export function originOf({ run, code }: RunState): { seed: string; startedAt: number } {
  for (const { origin } of code!.known.found.values()) if (origin !== undefined) return origin;
  return { seed: run.id, startedAt: run.startedAt ?? run.createdAt };
}

function changedError(run: RunRecord, { record }: StepState, comesTo: string): RunError {
  const before = foundIn(record);
  return changed(run, nameOf(before), comesTo, before);
}

function nameOf({ id, uses }: Pick<FoundStep, 'id' | 'uses'>): string {
  return uses === CODE_STEP ? `step "${id}"` : `step "${id}" (${uses})`;
}

function changed(
  run: RunRecord,
  expected: string,
  found: string,
  { branch, place }: Pick<FoundStep, 'branch' | 'place'>,
): RunError {
  const where = branch === '' ? '' : ` of branch ${branch}`;
  return {
    code: 'WORKFLOW_DEFINITION_CHANGED',
    message: `The code of the workflow "${run.workflowId}" changed under this run: at place ${place + 1}${where} it had taken ${expected}, and now comes to ${found}. Run it again from a step with the new code, or bring the old code back.`,
    details: { expected, found, branch, place },
  };
}
