import type { RunEnding, RunError } from '../../../../contracts/index.ts';
import type { Program } from '../run/program.ts';
import { isFailure, type JobState } from '../run/state.ts';

export interface CleanUpOutcome {
  isOverdue: boolean;
  limitMs: number;
  /** Maximum time to wait for a plugin, in ms, if the clean-up exceeded this time. Otherwise null. */
  pluginWaitMs: number | null;
}

export interface EndedRun {
  ending: RunEnding;
  program: Program;
  jobs: readonly JobState[];
  cleanUp: CleanUpOutcome;
  /** Time limit of the run, in ms. */
  timeoutMs: number | undefined;
}

/**
 * Returns the error of a cancelled or timed-out run, including a failure of the clean-up. Returns null for a cancelled
 * run without a clean-up failure.
 */
export function endingError({ ending, timeoutMs, ...run }: EndedRun): RunError | null {
  const cleanUp = cleanUpError(run);
  if (ending === 'cancelled') return cleanUp;
  return {
    code: 'STEP_FAILED',
    message: `The run did not end within ${timeoutMs} ms.`,
    details: { reason: 'timeout', ...(cleanUp ? { cleanUp } : {}) },
  };
}

function cleanUpError({
  program,
  jobs,
  cleanUp: { isOverdue, limitMs, pluginWaitMs },
}: Pick<EndedRun, 'program' | 'jobs' | 'cleanUp'>): RunError | null {
  if (isOverdue) {
    const why =
      pluginWaitMs === null
        ? `did not end within ${limitMs} ms`
        : `waited ${pluginWaitMs} ms for a plugin that is not loaded`;
    return {
      code: 'EXECUTION_TIMEOUT',
      message: `The clean-up ${why} and was stopped.`,
      details: { reason: 'clean_up_timeout', timeoutMs: pluginWaitMs ?? limitMs },
    };
  }
  for (const { record, steps } of jobs) {
    const error = record.error === null ? null : (JSON.parse(record.error) as RunError);
    // The timeout that ended the job is not a failure of the job's clean-up.
    if (error && error.details.reason !== 'timeout') return error;
    const bad = steps.find((step) => isFailure(program, step));
    if (!bad) continue;
    const { id } = program.step(bad);
    return {
      code: 'STEP_FAILED',
      message: `The step "${id}" failed: ${bad.error?.message ?? ''}`,
      details: { step: `${record.key}.${id}`, error: bad.error },
    };
  }
  return null;
}
