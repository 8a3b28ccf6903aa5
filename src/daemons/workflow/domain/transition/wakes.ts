import { isOwnStep } from '../definition/compile-code.ts';
import { hasSlotRequest, type JobState, jobsOf, type StepState } from '../run/state.ts';
import { isFinal } from '../states.ts';
import { cleanUpEnds } from './clean-up.ts';
import type { Turn } from './turn.ts';

/**
 * Returns the times at which timers wake a run. Limits that have passed are left out, because their timers would fire
 * repeatedly.
 */
export function wakesOf(turn: Turn): number[] {
  const { state } = turn;
  const times: Array<number | null> = [];
  for (const job of jobsOf(state)) {
    for (const step of job.steps) if (!hasSlotRequest(step)) times.push(wakeOf(turn, step));
    times.push(timeoutOf(turn, job));
  }
  times.push(...cleanUpEnds(turn), state.ending ? null : state.run.deadlineAt, awayUntil(turn));
  return times.filter((time) => time !== null);
}

function timeoutOf({ program }: Turn, { record }: JobState): number | null {
  const { timeoutMs } = program.job(record.key);
  if (timeoutMs === null || record.startedAt === null || record.ending || isFinal(record.status)) return null;
  return record.startedAt + timeoutMs;
}

/**
 * Returns the wake-up time of a step, or null if the step needs no timer. A due `ctx.step` needs no timer, because the
 * workflow function begins the step. A run that drains begins no due step, so its timer would fire repeatedly.
 */
function wakeOf(turn: Turn, step: StepState): number | null {
  const { status, wakeAt } = step.record;
  if (status !== 'waiting' || wakeAt === null) return null;
  const needsNoTimer = isOwnStep(turn.step(step)) || turn.state.draining;
  return needsNoTimer && turn.isPast(wakeAt) ? null : wakeAt;
}

/** Returns when a replay is tried again whose plugin was unavailable. */
function awayUntil(turn: Turn): number | null {
  const { code, draining } = turn.state;
  const wakeAt = code?.away?.wakeAt ?? null;
  return wakeAt !== null && draining && turn.isPast(wakeAt) ? null : wakeAt;
}
