import { isOwnStep } from '../definition/compile-code.ts';
import { type JobState, jobsOf, type StepState } from '../run/state.ts';
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
    for (const step of job.steps) if (step.flight !== 'queued') times.push(wakeOf(turn, step));
    times.push(timeoutOf(turn, job));
  }
  times.push(
    ...cleanUpEnds(turn),
    state.ending ? null : state.run.deadlineAt,
    state.code?.away?.wakeAt ?? null,
  );
  return times.filter((time) => time !== null);
}

function timeoutOf({ program }: Turn, { record }: JobState): number | null {
  const { timeoutMs } = program.job(record.key);
  if (timeoutMs === null || record.startedAt === null || record.ending || isFinal(record.status)) return null;
  return record.startedAt + timeoutMs;
}

/**
 * Returns the wake-up time of a step, or null if the step needs no timer. A due `ctx.step` needs no timer, because the
 * workflow function begins the step.
 */
function wakeOf(turn: Turn, step: StepState): number | null {
  const { status, wakeAt } = step.record;
  if (status !== 'waiting' || wakeAt === null) return null;
  return isOwnStep(turn.step(step)) && turn.isPast(wakeAt) ? null : wakeAt;
}
