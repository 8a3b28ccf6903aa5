import type { Deadlines } from '../../../../kit/time/deadlines.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { CodeDriver } from '../code/code-driver.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import { isFinal } from '../states.ts';
import type { CleanUp } from './clean-up.ts';
import type { JobPart, StepPart } from './run-parts.ts';
import type { RunState } from './run-state.ts';

export interface RunWakesDeps {
  run: Pick<RunRecord, 'deadlineAt'>;
  state: Pick<RunState, 'ending'>;
  cleanUp: CleanUp;
  code: Pick<CodeDriver, 'away'> | null;
  deadlines: Deadlines;
}

/** Returns the times at which a run wakes by itself. Passed limits are excluded: they would fire repeatedly. */
export function wakesOf(jobs: readonly JobPart[], deps: RunWakesDeps): number[] {
  const { run, state, cleanUp, code, deadlines } = deps;
  const times = jobs.flatMap((part) => [
    ...part.steps.map((step) => (step.slot === 'none' ? wakeOf(step, deadlines) : null)),
    timeoutOf(part),
  ]);
  const ends = [...cleanUp.endings(jobs), state.ending ? null : run.deadlineAt];
  return [...times, ...ends, code?.away?.wakeAt ?? null].filter((time) => time !== null);
}

function timeoutOf({ record, job }: JobPart): number | null {
  const counts = job.timeoutMs !== null && record.startedAt !== null && !record.ending;
  return counts && !isFinal(record.status) ? record.startedAt! + job.timeoutMs! : null;
}

/** Due steps of code are excluded: they were reported already, and the function consumes each on reaching it. */
function wakeOf({ record: { status, wakeAt }, step }: StepPart, deadlines: Deadlines): number | null {
  if (status !== 'waiting' || wakeAt === null) return null;
  return isOwnStep(step) && deadlines.isPast(wakeAt) ? null : wakeAt;
}
