import type { RunEnding, RunError } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { CompiledJob } from '../definition/compiled-workflow.ts';
import { isAtWork, isFailure, type JobState, newJob, type StepState } from '../run/state.ts';
import { isFinal } from '../states.ts';
import { holdOf, isLimitOver } from './clean-up-limit.ts';
import { advanceCode, cleanUpCode, stopCode } from './code-job.ts';
import { groupHolds, unfold } from './matrix.ts';
import { setJob } from './records.ts';
import { isReplaying } from './replay-state.ts';
import { FAILED_STATES } from './results.ts';
import { scopeOf } from './scopes.ts';
import { advanceStep, endStep, stepHolds, stopStep } from './steps.ts';
import type { Turn } from './turn.ts';

// This module advances jobs through their dependencies, matrix combinations and steps until each job ends.

/** Advances all matrix combinations of a job. */
export function advanceGroup(turn: Turn, job: CompiledJob): void {
  const jobs = turn.state.groups.get(job.id) ?? unfold(turn, job);
  if (!jobs) return;
  for (let changed = true; changed; ) {
    changed = false;
    if (job.failFast && jobs.length > 1 && jobs.some(({ record }) => FAILED_STATES.has(record.status)))
      for (const { record } of jobs) if (!isFinal(record.status)) record.ending ??= 'cancelled';
    let running = jobs.filter(({ record }) => !isFinal(record.status) && record.status !== 'pending').length;
    for (const one of jobs) {
      if (isFinal(one.record.status)) continue;
      const ends = endsWithRun(turn, job, one);
      if (ends === undefined) continue;
      if (ends) one.record.ending = turn.state.ending;
      if (one.record.status === 'pending' && one.record.ending) {
        setJob(turn, one, 'cancelled');
        changed = true;
        continue;
      }
      if (one.record.status === 'pending') {
        if (turn.state.draining || running >= job.maxParallel) continue;
        running++;
        setJob(turn, one, 'running');
      }
      advanceJob(turn, one);
      if (isFinal(one.record.status)) changed = true;
    }
  }
}

/** Stops all matrix combinations of a job, because the clean-up of the run exceeded its time limit. */
export function stopGroup(turn: Turn, job: CompiledJob, how: RunEnding): void {
  const { groups } = turn.state;
  const jobs = groups.get(job.id) ?? [newJob(job, job.id, null)];
  groups.set(job.id, jobs);
  for (const one of jobs) if (!isFinal(one.record.status)) stopJob(turn, one, how);
}

/**
 * Returns whether a job must begin to end because its run is ending. A job continues if its `if` is true for a
 * cancelled run. Returns undefined while a worker thread evaluates the `if`.
 */
function endsWithRun(turn: Turn, job: CompiledJob, one: JobState): boolean | undefined {
  if (!turn.state.ending || one.record.ending) return false;
  const holds = groupHolds(turn, job, one, 'cancelled');
  if (holds === undefined) return undefined;
  return !('value' in holds && holds.value);
}

function advanceJob(turn: Turn, job: JobState): void {
  const { record } = job;
  if (record.status === 'interrupted') setJob(turn, job, 'running');
  const { timeoutMs } = turn.program.job(record.key);
  if (timeoutMs !== null && !record.ending && turn.isPast(record.startedAt! + timeoutMs))
    record.ending = 'timed_out';
  if (record.ending) {
    cleanUpJob(turn, job, record.ending);
    return;
  }
  if (turn.state.code) {
    advanceCode(turn, turn.state.code, job);
    return;
  }
  for (const step of job.steps) {
    advanceStep(turn, step, job);
    if (!isFinal(step.record.status)) {
      followStep(turn, job, step);
      return;
    }
  }
  finishJob(turn, job);
}

/** Sets the job status to `waiting` if the current step waits, and to `running` otherwise. */
function followStep(turn: Turn, job: JobState, step: StepState): void {
  const status = step.record.status === 'waiting' ? 'waiting' : 'running';
  if (job.record.status !== status) setJob(turn, job, status);
}

function finishJob(turn: Turn, job: JobState): void {
  const { program } = turn;
  const { record } = job;
  if (record.status === 'waiting') setJob(turn, job, 'running');
  if (!job.failed) {
    const target = { of: 'job.outputs', job: record.key } as const;
    const template = program.job(record.key).outputs;
    const outputs = turn.ask(`outputs ${record.key}`, template, target, () => scopeOf(turn, job, 'success'));
    if (!outputs) return;
    if ('failure' in outputs) {
      job.failed = true;
      setJob(turn, job, 'failed', outputs.failure.error);
      return;
    }
    job.outputs = outputs.value as Record<string, JsonValue>;
    record.outputs = JSON.stringify(job.outputs);
    setJob(turn, job, 'succeeded');
    return;
  }
  const bad = job.steps.find((step) => isFailure(program, step))!;
  const { id } = program.step(bad);
  const how = bad.record.status === 'timed_out' ? 'timed out' : 'failed';
  setJob(turn, job, 'failed', {
    code: 'STEP_FAILED',
    message: `The step "${id}" ${how}: ${bad.error?.message ?? ''}`,
    details: { step: `${record.key}.${id}`, error: bad.error },
  });
}

/** Ends the steps of an ending job in order. Steps whose `if` is true for a cancelled run are performed as clean-up. */
function cleanUpJob(turn: Turn, job: JobState, how: RunEnding): void {
  const { state } = turn;
  // If the whole run is ending, the clean-up limit of the run replaces the limits of the jobs.
  if (!state.ending && isLimitOver(turn, job.cleanUp, job.record, holdOf(turn, job.steps))) {
    stopJob(turn, job, how);
    return;
  }
  if (state.code) {
    cleanUpCode(turn, state.code, job);
    return;
  }
  for (const step of job.steps) {
    if (isFinal(step.record.status)) continue;
    const holds = stepHolds(turn, step, job, 'cancelled');
    if (holds === undefined) return;
    if ('value' in holds && holds.value) advanceStep(turn, step, job);
    else endStep(turn, step, how);
    if (!isFinal(step.record.status)) {
      followStep(turn, job, step);
      return;
    }
  }
  endJob(turn, job, how);
}

/** Stops a job together with its clean-up steps. */
function stopJob(turn: Turn, job: JobState, how: RunEnding): void {
  const { code } = turn.state;
  job.record.ending ??= how;
  if (code) stopCode(turn, code, how);
  for (const step of job.steps) if (!isFinal(step.record.status)) stopStep(turn, step, how);
  if ((code && isReplaying(turn.state)) || job.steps.some(isAtWork)) return;
  for (const step of job.steps) if (!isFinal(step.record.status)) endStep(turn, step, how, true);
  endJob(turn, job, how);
}

function endJob(turn: Turn, job: JobState, how: RunEnding): void {
  const error: RunError | undefined =
    how === 'timed_out'
      ? { code: 'STEP_FAILED', message: 'The job did not end in time.', details: { reason: 'timeout' } }
      : undefined;
  if (job.record.status === 'pending') setJob(turn, job, 'cancelled');
  else setJob(turn, job, how, error);
}
