import { PartStatus, RunStatus } from '../../../contracts/index.ts';

/**
 * The state machine of runs, jobs and steps as data. Everything that changes a status asks `move`; the page
 * docs/workflow-states.md is printed from this table. @spec Workflow run
 */

export const RUN_STATES = RunStatus.options;
export type RunState = RunStatus;

/** Of a job, and of a step. */
export const PART_STATES = PartStatus.options;
export type PartState = PartStatus;

/**
 * Who may change a status. `caller`: whoever owns the run, through the API. `engine`: the daemon that holds the run's
 * fence. `recovery`: a daemon at its start, over what a dead one left.
 */
export type Actor = 'caller' | 'engine' | 'recovery';

export type Entity = 'run' | 'job' | 'step';
export type StateOf<E extends Entity> = E extends 'run' ? RunState : PartState;

export interface Transition<State extends string = string> {
  from: State;
  to: State;
  by: Actor;
  /** What makes it happen. */
  when: string;
}

const RUN: ReadonlyArray<Transition<RunState>> = [
  { from: 'queued', to: 'running', by: 'engine', when: 'there is room for it, and no limit holds it back' },
  { from: 'queued', to: 'cancelled', by: 'caller', when: 'it is cancelled before it started' },
  {
    from: 'queued',
    to: 'failed',
    by: 'engine',
    when: 'it was planned, and when its time comes its concurrency key is taken, with `strategy: reject`',
  },
  {
    from: 'running',
    to: 'waiting',
    by: 'engine',
    when: 'nothing of it is in the air: a time, a signal, an approval, a child, a decision or a plugin must come',
  },
  { from: 'running', to: 'succeeded', by: 'engine', when: 'every job ended, and none failed' },
  { from: 'running', to: 'failed', by: 'engine', when: 'a job failed' },
  { from: 'running', to: 'cancelling', by: 'engine', when: 'its deadline passes' },
  { from: 'running', to: 'cancelling', by: 'caller', when: 'it is cancelled' },
  { from: 'running', to: 'interrupted', by: 'recovery', when: 'the daemon that held it is gone' },
  { from: 'waiting', to: 'running', by: 'engine', when: 'what it waited for came' },
  { from: 'waiting', to: 'cancelling', by: 'caller', when: 'it is cancelled' },
  {
    from: 'interrupted',
    to: 'queued',
    by: 'recovery',
    when: 'it is taken up again, ahead of new work (event `run.resumed`)',
  },
  {
    from: 'interrupted',
    to: 'failed',
    by: 'recovery',
    when: 'work of it was in flight at three crashes, without a step finishing in between (`poison`)',
  },
  { from: 'interrupted', to: 'cancelled', by: 'caller', when: 'it is cancelled before it is taken up again' },
  {
    from: 'interrupted',
    to: 'cancelling',
    by: 'caller',
    when: 'it is cancelled before it is taken up again, and may have something to clean up',
  },
  {
    from: 'queued',
    to: 'cancelling',
    by: 'caller',
    when: 'it is cancelled before it is taken up again, and may have something to clean up',
  },
  {
    from: 'cancelling',
    to: 'cancelled',
    by: 'engine',
    when: 'it was cancelled, and has cleaned up, or had its time for that',
  },
  {
    from: 'cancelling',
    to: 'timed_out',
    by: 'engine',
    when: 'its deadline had passed, and it has cleaned up, or had its time for that',
  },
  {
    from: 'cancelling',
    to: 'succeeded',
    by: 'engine',
    when: 'its code had no step left to be told by, and returned',
  },
  {
    from: 'cancelling',
    to: 'failed',
    by: 'engine',
    when: 'its code had no step left to be told by, and threw',
  },
  ...(['cancelled', 'timed_out'] as const).map((to) => ({
    from: 'cancelling' as const,
    to,
    by: 'recovery' as const,
    when: 'its clean-up was in flight at three crashes, without a step finishing in between (`poison`)',
  })),
];

/** How jobs and steps alike are cancelled with their run. */
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
    when: 'the run is cancelled while nobody holds it',
  })),
  ...(['pending', 'running', 'waiting'] as const).map((from) => ({
    from,
    to: 'cancelled' as const,
    by: 'recovery' as const,
    when: 'the run was being cancelled, or is given up as `poison`',
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
    when: 'every step ended well, was skipped or may fail; of code: it returned',
  },
  {
    from: 'running',
    to: 'failed',
    by: 'engine',
    when: 'a step failed; of code: it threw, or could not go on',
  },
  { from: 'running', to: 'timed_out', by: 'engine', when: 'its own time limit, or that of the run, passes' },
  { from: 'running', to: 'interrupted', by: 'recovery', when: 'the daemon that held the run is gone' },
  { from: 'waiting', to: 'running', by: 'engine', when: 'what its step waited for came' },
  { from: 'waiting', to: 'failed', by: 'engine', when: 'what its step waited for failed' },
  { from: 'waiting', to: 'timed_out', by: 'engine', when: 'its own time limit, or that of the run, passes' },
  { from: 'interrupted', to: 'running', by: 'engine', when: 'the run is taken up again' },
  { from: 'interrupted', to: 'cancelled', by: 'engine', when: 'the run is cancelled' },
  { from: 'interrupted', to: 'failed', by: 'recovery', when: 'its run is given up as `poison`' },
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
    when: 'it must wait: for its next attempt, its plugin, a time, a signal, an approval, a child',
  },
  { from: 'running', to: 'timed_out', by: 'engine', when: 'a time limit passes, and no retry is left' },
  { from: 'running', to: 'interrupted', by: 'recovery', when: 'the daemon that ran it is gone' },
  {
    from: 'running',
    to: 'interrupted',
    by: 'engine',
    when: 'its process was lost, and another call of it may be at fault',
  },
  {
    from: 'waiting',
    to: 'running',
    by: 'engine',
    when: 'it is time for its next attempt, its plugin is back, or an operator wants one',
  },
  {
    from: 'waiting',
    to: 'waiting',
    by: 'engine',
    when: 'its plugin is back after an interruption, and an operator decides; or its child failed, and a retry is left',
  },
  { from: 'waiting', to: 'succeeded', by: 'engine', when: 'what it waited for came' },
  { from: 'waiting', to: 'failed', by: 'engine', when: 'what it waited for was refused or failed' },
  { from: 'waiting', to: 'timed_out', by: 'engine', when: 'what it waited for did not come in time' },
  { from: 'interrupted', to: 'running', by: 'engine', when: 'it is idempotent or carries a key' },
  {
    from: 'interrupted',
    to: 'waiting',
    by: 'engine',
    when: 'it may have had its effect: an operator decides',
  },
  { from: 'interrupted', to: 'cancelled', by: 'engine', when: 'the run is cancelled or timed out' },
  { from: 'interrupted', to: 'failed', by: 'recovery', when: 'its run is given up as `poison`' },
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

/** Whether the table has the transition. */
export function mayMove(entity: Entity, from: string, to: string, by: Actor): boolean {
  return ALLOWED.has(`${entity} ${from} ${to} ${by}`);
}

/** The new state; throws when the table does not have the transition: that is a fault of ours, never of a caller. */
export function move<E extends Entity>(entity: E, from: StateOf<E>, to: StateOf<E>, by: Actor): StateOf<E> {
  if (!mayMove(entity, from, to, by))
    throw new Error(`A ${entity} cannot go from ${from} to ${to} by ${by}.`);
  return to;
}

const FINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timed_out', 'cancelled', 'skipped']);

/** Whether nothing changes it any more. */
export function isFinal(state: RunState | PartState): boolean {
  return FINAL.has(state);
}
