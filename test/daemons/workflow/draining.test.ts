import { expect, test } from 'vitest';
import { compileDefinition } from '../../../src/daemons/workflow/domain/definition/compile-definition.ts';
import type { AttemptOutcome, RunEvent } from '../../../src/daemons/workflow/domain/run/events.ts';
import { Program } from '../../../src/daemons/workflow/domain/run/program.ts';
import { jobsOf } from '../../../src/daemons/workflow/domain/run/state.ts';
import { setStep, signalStep, waitStep } from '../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import type { StepKind } from '../../../src/daemons/workflow/domain/steps/step-kind.ts';
import { transition } from '../../../src/daemons/workflow/domain/transition/transition.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import { claimedState } from './support/simulated-run.ts';

const neverRuns = (): never => {
  throw new Error('A transition performs no effect.');
};
const work: StepKind = { ...setStep, name: 'work', mode: 'effect', takesSlot: true, run: neverRuns };
const pay: StepKind = { ...work, name: 'pay', isIdempotent: () => false };
const KINDS = new Map([setStep, signalStep, waitStep, work, pay].map((kind) => [kind.name, kind]));
const QUIET = new Set(['plugins.retried', 'attempt.ended', 'timer.set', 'timer.clear']);

/** A claimed run of the given jobs. Each event is applied at the given time, with the given number of free slots. */
function claim(
  jobs: Record<string, { steps: object[] } & Record<string, unknown>>,
  stamp: { slots?: number } = {},
) {
  const program = new Program(compileDefinition({ id: 'drained', jobs }, (uses) => KINDS.get(uses)));
  const state = claimedState(program);
  const apply = (event: RunEvent, stamp: { now?: number; slots?: number } = {}) => {
    const { now = 0, slots = 9 } = stamp;
    const stamped = { ...event, now, monotonic: now, fraction: 0, units: 1000, slots };
    const { writes, effects } = transition(state, stamped, program);
    return {
      taken: writes.flatMap((write) => (write.type === 'taken' ? [write.n] : [])),
      effects: effects.map(({ type }) => type).filter((type) => !QUIET.has(type)),
    };
  };
  const settle = (step: string, outcome: AttemptOutcome) => {
    const facts = { isIdempotent: false };
    apply({ type: 'attempt.settled', step, attempt: 1, outcome, isExpired: false, facts });
    return apply({ type: 'advance' });
  };
  const statuses = () =>
    jobsOf(state).flatMap(({ steps }) => steps.map(({ record }) => `${record.jobKey} ${record.status}`));
  apply({ type: 'claimed' }, stamp);
  return { state, apply, settle, statuses };
}

const entry = (kind: 'signal' | 'decision', name: string, payload: unknown): RunEvent => ({
  type: 'news',
  entry: { n: 1, kind, name, payload: JSON.stringify(payload), at: 0, takenBy: null },
  endedChildren: [],
});
const HELD = { uses: 'work' };
const held = { steps: [HELD] };

test('a decision to retry that a draining run receives is kept until the drain ends', () => {
  const { apply, settle, statuses, state } = claim({ paid: { steps: [{ id: 'pay', uses: 'pay' }] }, held });
  const error = { code: 'EXECUTION_ERROR', message: 'Its process was lost.', details: {} };
  apply({ type: 'attempt.begun', step: 'paid 0', attempt: 1 });
  settle('paid 0', { failure: { errorClass: 'code', error, retryAfterMs: null, interrupted: true } });
  expect(statuses()).toEqual(['paid waiting', 'held running']);
  apply({ type: 'drain' });
  expect(apply(entry('decision', 'paid.pay', { action: 'retry' }))).toEqual({ taken: [], effects: [] });
  expect(state.inbox).toHaveLength(1);
  expect(apply({ type: 'undrain' })).toEqual({ taken: [1], effects: ['attempt.start'] });
});

test('a signal or timer that comes due in a draining run ends its wait after the drain', () => {
  const { apply, settle, statuses } = claim({
    signalled: { steps: [{ uses: 'signal', with: { name: 'go', timeoutMs: 20 } }] },
    timed: { steps: [{ uses: 'wait', with: { ms: 10 } }] },
    held,
  });
  apply({ type: 'drain' });
  expect(apply(entry('signal', 'go', 1)).taken).toEqual([]);
  apply({ type: 'advance' }, { now: 30 });
  expect(settle('held 0', { output: null }).effects).toEqual(['leave']);
  expect(statuses()).toEqual(['signalled waiting', 'timed waiting', 'held succeeded']);
});

test('a signal that does not come in time still fails its step in a draining run', () => {
  const signal = { uses: 'signal', with: { name: 'go', timeoutMs: 20 } };
  const { apply, statuses } = claim({ signalled: { steps: [signal] }, held });
  apply({ type: 'drain' });
  apply({ type: 'advance' }, { now: 30 });
  expect(statuses()).toEqual(['signalled timed_out', 'held running']);
});

test.each([
  ['set', { uses: 'set', with: { v: 1 } }],
  ['wait', { uses: 'wait', with: { ms: 10 } }],
  ['signal', { uses: 'signal', with: { name: 'go' } }],
  ['work', HELD],
])('a draining run begins no step of the kind "%s" and no job', (_, step) => {
  const { apply, settle, statuses, state } = claim({
    held,
    last: { steps: [HELD, step] },
    next: { needs: ['held'], steps: [step] },
  });
  apply({ type: 'drain' });
  expect(settle('held 0', { output: null }).effects).toEqual([]);
  expect(settle('last 0', { output: null }).effects).toEqual(['leave']);
  expect(statuses()).toEqual(['held succeeded', 'last succeeded', 'last pending', 'next pending']);
  expect(jobsOf(state).map(({ record }) => record.status)).toEqual(['succeeded', 'running', 'pending']);
  expect(state.run.status).toBe('waiting');
});

test('a draining run ends if it has no further step to perform', () => {
  const { apply, settle, state } = claim({ held: { steps: [HELD, { ...HELD, if: 'failure()' }] } });
  apply({ type: 'drain' });
  expect(settle('held 0', { output: null }).effects).toEqual(['leave']);
  expect(state.run.status).toBe('succeeded');
});

test('a step whose slot request a drain withdraws takes no slot before the withdrawal', () => {
  const { apply, state } = claim({ queued: held }, { slots: 0 });
  const step = 'queued 0';
  expect(apply({ type: 'drain' }).effects).toEqual(['slot.withdraw']);
  expect(apply({ type: 'slot.granted', owner: step }).effects).toEqual([]);
  expect(apply({ type: 'undrain' }).effects).toEqual([]);
  expect(apply({ type: 'plugins.changed' }).effects).toEqual([]);
  expect(apply({ type: 'slot.withdrawn', step }, { slots: 0 }).effects).toEqual(['slot.request']);
  expect(apply({ type: 'slot.granted', owner: step }).effects).toEqual(['attempt.start']);
  expect(state.phase).toBe('active');
});

test('a run that drains without work in flight leaves memory once its slot requests are withdrawn', () => {
  const { apply } = claim({ queued: held }, { slots: 0 });
  expect(apply({ type: 'drain' }).effects).toEqual(['slot.withdraw']);
  expect(apply({ type: 'slot.withdrawn', step: 'queued 0' }).effects).toEqual(['leave']);
});

test('the time limit of the clean-up of a job stands still while the run drains', () => {
  const undo = { ...HELD, if: 'cancelled()' };
  const { apply, settle, statuses } = claim({ late: { timeoutMs: 10, steps: [HELD, undo] }, held });
  apply({ type: 'drain' });
  expect(apply({ type: 'advance' }, { now: 20 }).effects).toEqual(['attempt.abort']);
  settle('late 0', { output: null });
  expect(apply({ type: 'advance' }, { now: minutes(10) }).effects).toEqual([]);
  expect(apply({ type: 'undrain' }, { now: minutes(20) }).effects).toEqual(['attempt.start']);
  expect(apply({ type: 'advance' }, { now: minutes(22) }).effects).toEqual(['attempt.abort']);
  expect(statuses()).toEqual(['late succeeded', 'late running', 'held running']);
});
