import type { RunEnding } from '../../../../contracts/index.ts';
import { type Hold, type JobState, jobsOf } from '../run/state.ts';
import { isFinal } from '../states.ts';
import { cleanUpMsOf, countLimit, holdOf, isLimitOver, limitEndsAt } from './clean-up-limit.ts';
import type { CleanUpOutcome } from './ending-error.ts';
import { setRun } from './records.ts';
import { replayHold } from './replay-state.ts';
import type { Turn } from './turn.ts';

// This module implements the clean-up phase of a run that was cancelled or timed out. The phase has its own time
// limit. @spec docs/workflows.md "Cancelling and clean-up"

export function beginCleanUp(turn: Turn, how: RunEnding, by: 'engine' | 'caller'): void {
  turn.state.ending = how;
  turn.state.run.ending = how;
  setRun(turn, 'cancelling', by, how === 'timed_out' ? { reason: 'timeout' } : undefined);
}

/** Returns whether the clean-up limit of the run has passed. The remaining steps are stopped after the limit. */
export function isOverdue(turn: Turn): boolean {
  const { ending, cleanUp, run } = turn.state;
  return ending !== null && isLimitOver(turn, cleanUp, run, runHold(turn));
}

/**
 * Starts, pauses or resumes the clean-up timer of an ending run. If the run is not ending, handles the timers of its
 * ending jobs instead.
 */
export function countCleanUps(turn: Turn): void {
  const { state } = turn;
  if (state.ending) {
    if (countLimit(turn, state.cleanUp, state.run, runHold(turn))) turn.touchRun();
    return;
  }
  for (const job of jobsOf(state))
    if (isCleaningUp(job) && countLimit(turn, job.cleanUp, job.record, holdOf(turn, job.steps)))
      turn.touchJob(job);
}

/**
 * Returns the end time of an ending run's clean-up limit. If the run is not ending, returns the end times for its
 * ending jobs instead.
 */
export function cleanUpEnds(turn: Turn): Array<number | null> {
  const { state } = turn;
  if (state.ending) return [limitEndsAt(turn, state.cleanUp, state.run, runHold(turn))];
  return jobsOf(state)
    .filter(isCleaningUp)
    .map(({ cleanUp, record, steps }) => limitEndsAt(turn, cleanUp, record, holdOf(turn, steps)));
}

export function cleanUpOutcome(turn: Turn): CleanUpOutcome {
  const { run, limits } = turn.state;
  const isLate = isOverdue(turn);
  const pluginWaitMs = isLate && run.endingHeldAt !== null ? limits.maxPluginWaitMs : null;
  return { isOverdue: isLate, limitMs: cleanUpMsOf(turn), pluginWaitMs };
}

/** Records that the ending run is waiting and has no work in flight. */
export function parkCleanUp(turn: Turn): void {
  const { wakeAt } = turn.state.run;
  turn.touchRun();
  turn.event({ type: 'run.waiting', ...(wakeAt === null ? {} : { data: { wakeAt } }) });
}

function runHold(turn: Turn): Hold {
  const { state } = turn;
  const awaitsChildren = state.openChildren !== null && state.openChildren.length > 0;
  const hold = awaitsChildren
    ? 'others'
    : holdOf(
        turn,
        jobsOf(state).flatMap(({ steps }) => steps),
      );
  return state.code && hold !== 'others' ? (replayHold(state.code) ?? hold) : hold;
}

const isCleaningUp = ({ record }: JobState): boolean => record.ending !== null && !isFinal(record.status);
