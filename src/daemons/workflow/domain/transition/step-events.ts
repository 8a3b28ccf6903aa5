import type { RunEvent } from '../run/events.ts';
import { jobsOf, type RunState, type StepState, stepAt } from '../run/state.ts';
import { beginAttempt, noteBegun, resumeWith, useInput } from './attempts.ts';
import { noteChildCancelled } from './children.ts';
import { noteOwnTimeout } from './own-steps.ts';
import { settleAttempt, waitForPlugin } from './settle.ts';
import type { Turn } from './turn.ts';
import { settleChild } from './waits.ts';

export type StepEvent = Extract<
  RunEvent,
  {
    type:
      | `slot.${string}`
      | 'step.inspected'
      | `attempt.${string}`
      | 'child.cancelled'
      | `children.${string}`;
  }
>;
type Of<Type extends StepEvent['type']> = Extract<StepEvent, { type: Type }>;

/** Applies an event of one or more steps. Returns whether the run must be advanced at once. */
export function takeStepEvent(turn: Turn, event: Exclude<StepEvent, { type: 'children.open' }>): boolean {
  switch (event.type) {
    case 'slot.granted':
      return takeSlot(turn, event);
    case 'slot.withdrawn':
      return withdrawn(turn, event);
    case 'step.inspected':
      return inspected(turn, event);
    case 'attempt.evaluated':
      return evaluated(turn, event);
    case 'attempt.begun':
      return begun(turn, event);
    case 'attempt.expired':
      return expired(turn, event);
    case 'attempt.settled':
      return settled(turn, event);
    case 'children.found':
      return childrenFound(turn, event);
    case 'children.unknown':
      for (const key of event.steps) endLook(stepAt(turn.state, key).step);
      return true;
    case 'child.cancelled': {
      const { step } = stepAt(turn.state, event.step);
      endLook(step);
      if (event.isCancelled) noteChildCancelled(turn, step);
      return true;
    }
  }
}

function endLook(step: StepState): void {
  if (step.flight === 'looking') step.flight = 'idle';
}

/**
 * Handles a granted slot. Begins the attempt of a step, or marks the slot of the replay as held. Ignores withdrawn
 * requests, because the withdrawal releases the slot.
 */
function takeSlot(turn: Turn, { owner }: Of<'slot.granted'>): boolean {
  const { state } = turn;
  if (owner === 'replay') {
    if (state.code?.slot === 'queued') state.code.slot = 'held';
    return true;
  }
  const { step } = stepAt(state, owner);
  if (step.flight !== 'queued') return false;
  step.flight = 'idle';
  beginAttempt(turn, step);
  return true;
}

/** Handles the withdrawal of a slot request. If the run no longer drains, the step then requests a slot again. */
function withdrawn({ state }: Turn, { step: key }: Of<'slot.withdrawn'>): boolean {
  const { step } = stepAt(state, key);
  if (step.flight === 'withdrawing') step.flight = 'idle';
  return true;
}

function inspected(turn: Turn, { step: key, away, facts }: Of<'step.inspected'>): boolean {
  const { step } = stepAt(turn.state, key);
  endLook(step);
  const { status, idempotencyKey } = step.record;
  if (status !== 'interrupted' && !(status === 'waiting' && step.wait?.for === 'plugin')) return true;
  // Without the plugin's manifest, it is unknown whether a step without an idempotency key can safely run again. Such a
  // step waits for the plugin.
  if (away && idempotencyKey === null) waitForPlugin(turn, step, away, { interrupted: true });
  else resumeWith(turn, step, facts);
  return true;
}

/**
 * Handles the evaluated input of an attempt. The evaluation no longer counts as in flight, even if the step has ended.
 */
function evaluated(turn: Turn, { step: key, attempt, input, facts }: Of<'attempt.evaluated'>): boolean {
  turn.unmark();
  const { step } = stepAt(turn.state, key);
  if (step.flight === 'evaluating' && step.record.attempts === attempt) useInput(turn, step, input, facts);
  turn.state.isStale = true;
  return false;
}

/** Returns the step if the attempt with this number is in flight. Otherwise returns undefined. */
function stepInFlight({ state }: Turn, { step: key, attempt }: { step: string; attempt: number }) {
  const { step } = stepAt(state, key);
  return step.flight === 'working' && step.record.attempts === attempt ? step : undefined;
}

/**
 * Handles the start of an attempt's work. Returns true during a clean-up, so that `advanceRun` resumes the paused
 * clean-up timer.
 */
function begun(turn: Turn, event: Of<'attempt.begun'>): boolean {
  const step = stepInFlight(turn, event);
  if (!step) return false;
  step.wasUnavailable = false;
  noteBegun(turn, step);
  turn.touchStep(step);
  return isEnding(turn.state, step);
}

function isEnding(state: RunState, { record }: StepState): boolean {
  if (state.ending) return true;
  return jobsOf(state).some((job) => job.record.key === record.jobKey && job.record.ending !== null);
}

function expired(turn: Turn, event: Of<'attempt.expired'>): boolean {
  const step = stepInFlight(turn, event);
  if (!step) return false;
  step.isExpired = true;
  noteOwnTimeout(turn, step);
  return false;
}

function settled(turn: Turn, event: Of<'attempt.settled'>): boolean {
  const step = stepInFlight(turn, event);
  if (!step) return false;
  step.isExpired ||= event.isExpired;
  settleAttempt(turn, step, event.outcome, event.facts);
  turn.state.isStale = true;
  return false;
}

function childrenFound(turn: Turn, { found }: Of<'children.found'>): boolean {
  for (const { step: key, runId, child, facts } of found) {
    const { step } = stepAt(turn.state, key);
    endLook(step);
    if (step.record.status !== 'waiting' || step.wait?.runId !== runId) continue;
    if (child) settleChild(turn, step, child, facts);
    else step.openChild = runId;
  }
  return true;
}
