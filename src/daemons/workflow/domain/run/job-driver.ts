import type { PartStatus, RunEnding, RunError } from '../../../../contracts/index.ts';
import type { Deadlines } from '../../../../kit/time/deadlines.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { CodeDriver } from '../code/code-driver.ts';
import type { Scope } from '../definition/expressions.ts';
import type { Condition } from '../definition/templates.ts';
import { isFinal } from '../states.ts';
import { evaluationFailure } from '../steps/retry-policy.ts';
import type { StepDriver } from '../steps/step-driver.ts';
import { type CleanUpLimit, holdOf } from './clean-up-limit.ts';
import type { RunEvaluations } from './run-evaluations.ts';
import type { RunJournal } from './run-journal.ts';
import {
  combinations,
  isFailure,
  type JobGroup,
  type JobPart,
  MOST_STEPS,
  newJobPart,
  type RunParts,
  resultOf,
  stepIdOf,
} from './run-parts.ts';
import type { RunRecorder } from './run-recorder.ts';
import type { RunScopes } from './run-scopes.ts';
import { type RunState, reasonOf } from './run-state.ts';

export const FAILED_STATES: ReadonlySet<string> = new Set<PartStatus>(['failed', 'timed_out']);

export interface JobDriverDeps {
  groups: RunParts;
  recorder: RunRecorder;
  scopes: RunScopes;
  evaluations: RunEvaluations;
  steps: StepDriver;
  state: RunState;
  journal: RunJournal;
  deadlines: Deadlines;
  /** Clean-up limit of an ending job. */
  limit: CleanUpLimit;
  /** Drives the only job of a code workflow. */
  code: CodeDriver | null;
}

/** Drives jobs: dependencies, matrix combinations, steps in order, and the end. */
export function createJobDriver(deps: JobDriverDeps) {
  const { groups, recorder, scopes, evaluations, steps, state, journal, deadlines, limit, code } = deps;
  const { setJob } = recorder;
  const { scopeOf } = scopes;

  /** Advances a job as far as possible. */
  function advanceJob(part: JobPart) {
    if (part.record.status === 'interrupted') setJob(part, 'running');
    const { timeoutMs } = part.job;
    if (timeoutMs !== null && !part.record.ending && deadlines.isPast(part.record.startedAt! + timeoutMs))
      part.record.ending = 'timed_out';
    if (part.record.ending) return cleanUp(part, part.record.ending);
    if (code) return code.advance(part);
    for (const step of part.steps) {
      steps.advanceStep(step, part);
      if (!isFinal(step.record.status)) {
        const status = step.record.status === 'waiting' ? 'waiting' : 'running';
        if (part.record.status !== status) setJob(part, status);
        return;
      }
    }
    finishJob(part);
  }

  function finishJob(part: JobPart) {
    if (part.record.status === 'waiting') setJob(part, 'running');
    if (!part.failed) {
      try {
        const outputs = evaluations.ask(part, part.job.outputs, () => scopeOf(part, 'success'));
        if (!outputs) return;
        part.outputs = outputs.value as Record<string, JsonValue>;
        part.record.outputs = JSON.stringify(part.outputs);
        return setJob(part, 'succeeded');
      } catch (error) {
        part.failed = true;
        return setJob(part, 'failed', evaluationFailure(error).error);
      }
    }
    const bad = part.steps.find(isFailure)!;
    const message = `The step "${bad.step.id}" ${bad.record.status === 'timed_out' ? 'timed out' : 'failed'}: ${bad.error?.message ?? ''}`;
    setJob(part, 'failed', {
      code: 'STEP_FAILED',
      message,
      details: { step: stepIdOf(bad), error: bad.error },
    });
  }

  /** Ends the steps of an ending job in order; steps whose `if` holds on cancel run as clean-up. */
  function cleanUp(part: JobPart, how: RunEnding): void {
    // When the run itself ends, its own limit covers all jobs.
    if (!state.ending && limit.isOver(part.record, holdOf(part.steps))) {
      stopJob(part, how);
      return;
    }
    if (code) {
      code.cleanUp(part);
      return;
    }
    for (const step of part.steps) {
      if (isFinal(step.record.status)) continue;
      const goesOn = holdsOnCancel(step.record, step.step.condition, part);
      if (goesOn === undefined) return;
      if (goesOn) steps.advanceStep(step, part);
      else steps.endStep(step, how);
      const { status } = step.record;
      if (isFinal(status)) continue;
      const jobStatus = status === 'waiting' ? 'waiting' : 'running';
      if (part.record.status !== jobStatus) setJob(part, jobStatus);
      return;
    }
    endJob(part, how);
  }

  /** Whether a step or job runs as clean-up; undefined while a thread evaluates its `if`. */
  function holdsOnCancel(part: object, condition: Condition, job: JobPart): boolean | undefined {
    try {
      return evaluations.ask(part, condition, () => scopeOf(job, 'cancelled'))?.value;
    } catch {
      return false;
    }
  }

  /** Stops a job, including its clean-up. */
  function stopJob(part: JobPart, how: RunEnding): void {
    part.record.ending ??= how;
    code?.stop(part, reasonOf(how));
    for (const step of part.steps) if (!isFinal(step.record.status)) steps.stopStep(step, how);
    if (part.passing || part.steps.some(({ abort }) => abort !== null)) return;
    for (const step of part.steps) if (!isFinal(step.record.status)) steps.endStep(step, how, true);
    endJob(part, how);
  }

  function endJob(part: JobPart, how: RunEnding): void {
    const error: RunError | undefined =
      how === 'timed_out'
        ? { code: 'STEP_FAILED', message: 'The job did not end in time.', details: { reason: 'timeout' } }
        : undefined;
    if (part.record.status === 'pending') setJob(part, 'cancelled');
    else setJob(part, how, error);
  }

  /** Stops a job of a run whose clean-up exceeded its limit. */
  function stopGroup(group: JobGroup, how: RunEnding): void {
    group.parts ??= [newJobPart(group.job, group.job.id, null)];
    for (const part of group.parts) if (!isFinal(part.record.status)) stopJob(part, how);
  }

  /**
   * Whether a job ends with its run: jobs whose `if` holds on cancel continue. Undefined while a thread evaluates it.
   */
  function endsWithRun(group: JobGroup, part: JobPart): boolean | undefined {
    if (!state.ending || part.record.ending) return false;
    const goesOn = holdsOnCancel(group.job, group.job.condition, part);
    return goesOn === undefined ? undefined : !goesOn;
  }

  /** Advances all matrix combinations of a job. */
  function advanceGroup(group: JobGroup): void {
    if (group.parts === null && !unfold(group)) return;
    for (let changed = true; changed; ) {
      changed = false;
      const parts = group.parts!;
      if (
        group.job.failFast &&
        parts.length > 1 &&
        parts.some(({ record }) => FAILED_STATES.has(record.status))
      ) {
        for (const part of parts) if (!isFinal(part.record.status)) part.record.ending ??= 'cancelled';
      }
      let running = parts.filter(
        ({ record }) => !isFinal(record.status) && record.status !== 'pending',
      ).length;
      for (const part of parts) {
        if (isFinal(part.record.status)) continue;
        const ends = endsWithRun(group, part);
        if (ends === undefined) continue;
        if (ends) part.record.ending = state.ending;
        if (part.record.status === 'pending' && part.record.ending) {
          setJob(part, 'cancelled');
          changed = true;
          continue;
        }
        if (part.record.status === 'pending') {
          if (running >= group.job.maxParallel) continue;
          running++;
          setJob(part, 'running');
        }
        advanceJob(part);
        if (isFinal(part.record.status)) changed = true;
      }
    }
  }

  /** Decides whether the job runs, and expands its matrix. False while a dependency or an evaluation is pending. */
  function unfold(group: JobGroup): boolean {
    const { job } = group;
    const results = job.needs.map((id) => resultOf(groups.get(id)!));
    if (results.includes(null)) return false;
    const seen: Scope['state'] =
      state.ending || results.includes('cancelled')
        ? 'cancelled'
        : results.some((result) => result === 'failed' || result === 'timed_out')
          ? 'failure'
          : results.includes('skipped')
            ? 'skipped'
            : 'success';
    const single = newJobPart(job, job.id, null);
    try {
      const holds = evaluations.ask(state.ending ? job : group, job.condition, () => scopeOf(single, seen));
      if (!holds) return false;
      if (!holds.value) {
        group.parts = [single];
        setJob(single, state.ending ? 'cancelled' : 'skipped');
        return true;
      }
      const matrix = job.matrix && evaluations.ask(group, job.matrix, () => scopeOf(single, seen));
      if (matrix === undefined) return false;
      const all = matrix && combinations(matrix.value as Record<string, JsonValue>);
      requireRoom((all?.length ?? 1) * job.steps.length);
      group.parts = all?.map((values, index) => newJobPart(job, `${job.id}:${index}`, values)) ?? [single];
      if (group.parts.length === 0) {
        group.parts = [single];
        setJob(single, 'skipped');
      }
      // Stores pending combinations too, so that a service that resumes the run knows them.
      if (all) for (const part of group.parts) journal.touch(part);
    } catch (error) {
      group.parts = [single];
      setJob(single, 'failed', evaluationFailure(error).error);
    }
    return true;
  }

  /** Throws when expanded matrices exceed MOST_STEPS, which a small definition can reach. */
  function requireRoom(more: number): void {
    const known = [...groups.values()].reduce(
      (sum, { job, parts }) => sum + (parts?.length ?? 0) * job.steps.length,
      0,
    );
    if (known + more > MOST_STEPS)
      throw new Error(`the run would have ${known + more} steps with it; ${MOST_STEPS} are the most`);
  }

  return { advanceGroup, stopGroup };
}
