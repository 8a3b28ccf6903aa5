import { PartStatus, RunStatus } from '../../../contracts/index.ts';

/**
 * States of a run. Every status change of a run, job or step calls `move`. docs/workflow-states.md is generated from
 * the transitions in this file. @spec Workflow run
 */

export const RUN_STATES = RunStatus.options;
export type RunState = RunStatus;

/** States of jobs and steps. */
export const PART_STATES = PartStatus.options;
export type PartState = PartStatus;

/**
 * Actor of a status change. `caller` is a client that changes the run through the API. `engine` is the service process
 * that owns the run. `recovery` is a service process that starts after a crash.
 */
export type Actor = 'caller' | 'engine' | 'recovery';

export type Entity = 'run' | 'job' | 'step';
export type StateOf<E extends Entity> = E extends 'run' ? RunState : PartState;

export interface Transition<State extends string = string> {
  from: State;
  to: State;
  by: Actor;
  /** Condition of the transition, as worded in docs/workflow-states.md. */
  when: string;
}

const RUN: ReadonlyArray<Transition<RunState>> = [
  { from: 'queued', to: 'running', by: 'engine', when: 'a slot is free and no limit applies' },
  { from: 'queued', to: 'cancelled', by: 'caller', when: 'it is cancelled before it started' },
  {
    from: 'queued',
    to: 'failed',
    by: 'engine',
    when: 'its planned time came while its concurrency key was taken, with `strategy: reject`',
  },
  {
    from: 'running',
    to: 'waiting',
    by: 'engine',
    when: 'nothing is in flight; it waits for a time, signal, approval, child, decision or plugin',
  },
  { from: 'running', to: 'succeeded', by: 'engine', when: 'every job ended, and none failed' },
  { from: 'running', to: 'failed', by: 'engine', when: 'a job failed' },
  { from: 'running', to: 'cancelling', by: 'engine', when: 'its deadline passes' },
  { from: 'running', to: 'cancelling', by: 'caller', when: 'it is cancelled' },
  { from: 'running', to: 'interrupted', by: 'recovery', when: 'its service crashed' },
  { from: 'waiting', to: 'running', by: 'engine', when: 'its wait ended' },
  { from: 'waiting', to: 'cancelling', by: 'caller', when: 'it is cancelled' },
  {
    from: 'interrupted',
    to: 'queued',
    by: 'recovery',
    when: 'it resumes, ahead of new runs (event `run.resumed`)',
  },
  {
    from: 'interrupted',
    to: 'failed',
    by: 'recovery',
    when: 'it was in flight at three crashes without finishing a step (`poison`)',
  },
  { from: 'interrupted', to: 'cancelled', by: 'caller', when: 'it is cancelled before it resumes' },
  {
    from: 'interrupted',
    to: 'cancelling',
    by: 'caller',
    when: 'it is cancelled before it resumes, and may have to clean up',
  },
  {
    from: 'queued',
    to: 'cancelling',
    by: 'caller',
    when: 'it is cancelled before it resumes, and may have to clean up',
  },
  {
    from: 'cancelling',
    to: 'cancelled',
    by: 'engine',
    when: 'it was cancelled, and its clean-up ended or timed out',
  },
  {
    from: 'cancelling',
    to: 'timed_out',
    by: 'engine',
    when: 'its deadline passed, and its clean-up ended or timed out',
  },
  {
    from: 'cancelling',
    to: 'succeeded',
    by: 'engine',
    when: 'its code returned without another step',
  },
  {
    from: 'cancelling',
    to: 'failed',
    by: 'engine',
    when: 'its code threw without another step',
  },
  ...(['cancelled', 'timed_out'] as const).map((to) => ({
    from: 'cancelling' as const,
    to,
    by: 'recovery' as const,
    when: 'its clean-up was in flight at three crashes without finishing a step (`poison`)',
  })),
];

const PART_CANCELLED: ReadonlyArray<Transition<PartState>> = [
  ...(['running', 'waiting'] as const).map((from) => ({
    from,
    to: 'cancelled' as const,
    by: 'engine' as const,
    when: 'the run is cancelled, or `failFast` ends its matrix',
  })),
  ...(['pending', 'waiting', 'interrupted'] as const).map((from) => ({
    from,
    to: 'cancelled' as const,
    by: 'caller' as const,
    when: 'the run is cancelled while no service executes it',
  })),
  ...(['pending', 'running', 'waiting'] as const).map((from) => ({
    from,
    to: 'cancelled' as const,
    by: 'recovery' as const,
    when: 'the run was being cancelled, or fails as `poison`',
  })),
];

const JOB: ReadonlyArray<Transition<PartState>> = [
  { from: 'pending', to: 'running', by: 'engine', when: 'the jobs it needs have ended and its `if` holds' },
  {
    from: 'pending',
    to: 'skipped',
    by: 'engine',
    when: 'its `if` does not hold, or a job it needs did not succeed',
  },
  { from: 'pending', to: 'failed', by: 'engine', when: 'its `if` or its matrix cannot be evaluated' },
  {
    from: 'pending',
    to: 'cancelled',
    by: 'engine',
    when: 'the run is cancelled or timed out, or `failFast` ends its matrix',
  },
  { from: 'running', to: 'waiting', by: 'engine', when: 'its step waits' },
  {
    from: 'running',
    to: 'succeeded',
    by: 'engine',
    when: 'every step succeeded, was skipped or may fail; of code: it returned',
  },
  {
    from: 'running',
    to: 'failed',
    by: 'engine',
    when: 'a step failed; of code: it threw, or could not continue',
  },
  { from: 'running', to: 'timed_out', by: 'engine', when: 'its own time limit, or that of the run, passes' },
  { from: 'running', to: 'interrupted', by: 'recovery', when: 'the service of the run crashed' },
  { from: 'waiting', to: 'running', by: 'engine', when: 'the wait of its step ended' },
  { from: 'waiting', to: 'failed', by: 'engine', when: 'the wait of its step failed' },
  { from: 'waiting', to: 'timed_out', by: 'engine', when: 'its own time limit, or that of the run, passes' },
  { from: 'interrupted', to: 'running', by: 'engine', when: 'the run resumes' },
  { from: 'interrupted', to: 'cancelled', by: 'engine', when: 'the run is cancelled' },
  { from: 'interrupted', to: 'failed', by: 'recovery', when: 'its run fails as `poison`' },
  { from: 'interrupted', to: 'timed_out', by: 'engine', when: 'the time limit of the run passes' },
  ...PART_CANCELLED,
];

const STEP: ReadonlyArray<Transition<PartState>> = [
  {
    from: 'pending',
    to: 'running',
    by: 'engine',
    when: 'the steps before it ended, its `if` holds, and there is a slot',
  },
  {
    from: 'pending',
    to: 'skipped',
    by: 'engine',
    when: 'its `if` does not hold, or a step before it failed',
  },
  { from: 'pending', to: 'failed', by: 'engine', when: 'its `if` cannot be evaluated' },
  { from: 'pending', to: 'cancelled', by: 'engine', when: 'the run or its job ends before its turn' },
  { from: 'running', to: 'succeeded', by: 'engine', when: 'its work is done' },
  { from: 'running', to: 'failed', by: 'engine', when: 'its work failed, and no retry is left' },
  {
    from: 'running',
    to: 'waiting',
    by: 'engine',
    when: 'it waits for its next attempt, its plugin, a time, signal, approval or child',
  },
  { from: 'running', to: 'timed_out', by: 'engine', when: 'a time limit passes, and no retry is left' },
  { from: 'running', to: 'interrupted', by: 'recovery', when: 'its service crashed' },
  {
    from: 'running',
    to: 'interrupted',
    by: 'engine',
    when: 'its process was lost, perhaps by the fault of another call',
  },
  {
    from: 'waiting',
    to: 'running',
    by: 'engine',
    when: 'its next attempt is due, its plugin is back, or an operator retries it',
  },
  {
    from: 'waiting',
    to: 'waiting',
    by: 'engine',
    when: 'its plugin is back and an operator must decide; or its child failed and a retry is left',
  },
  { from: 'waiting', to: 'succeeded', by: 'engine', when: 'its wait ended' },
  { from: 'waiting', to: 'failed', by: 'engine', when: 'its wait was refused or failed' },
  { from: 'waiting', to: 'timed_out', by: 'engine', when: 'its wait timed out' },
  { from: 'interrupted', to: 'running', by: 'engine', when: 'it is idempotent or carries a key' },
  {
    from: 'interrupted',
    to: 'waiting',
    by: 'engine',
    when: 'it may have had its effect: an operator decides',
  },
  { from: 'interrupted', to: 'cancelled', by: 'engine', when: 'the run is cancelled or timed out' },
  { from: 'interrupted', to: 'failed', by: 'recovery', when: 'its run fails as `poison`' },
  ...PART_CANCELLED,
];

export const TRANSITIONS: Readonly<Record<Entity, readonly Transition[]>> = {
  run: RUN,
  job: JOB,
  step: STEP,
};

const ALLOWED = new Set(
  Object.entries(TRANSITIONS).flatMap(([entity, list]) =>
    list.map(({ from, to, by }) => `${entity} ${from} ${to} ${by}`),
  ),
);

/** Returns whether the actor is allowed to make this transition. */
export function mayMove(entity: Entity, from: string, to: string, by: Actor): boolean {
  return ALLOWED.has(`${entity} ${from} ${to} ${by}`);
}

/** Returns the new state. Throws an internal error if the transition table does not contain the change. */
export function move<E extends Entity>(entity: E, from: StateOf<E>, to: StateOf<E>, by: Actor): StateOf<E> {
  if (!mayMove(entity, from, to, by))
    throw new Error(`A ${entity} cannot go from ${from} to ${to} by ${by}.`);
  return to;
}

const FINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timed_out', 'cancelled', 'skipped']);

export function isFinal(state: RunState | PartState): boolean {
  return FINAL.has(state);
}

/** Returns whether a pause applies to the run. A run that is being cancelled cleans up nevertheless. */
export function isPaused(run: { status: RunState; pauseScope: string | null }): boolean {
  return run.pauseScope !== null && run.status !== 'cancelling' && !isFinal(run.status);
}
