import type { PartStatus, RunError } from '../../../../contracts/index.ts';
import type { Deadlines } from '../../../../kit/deadlines.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { CodeDriver } from '../code/code-driver.ts';
import type { Scope } from '../definition/expressions.ts';
import { isFinal } from '../states.ts';
import { evaluationFailure } from '../steps/retry-policy.ts';
import type { StepDriver } from '../steps/step-driver.ts';
import type { RunEvaluations } from './run-evaluations.ts';
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
import { CANCELLED, RUN_TIMED_OUT } from './run-state.ts';

export const FAILED_STATES: ReadonlySet<string> = new Set<PartStatus>(['failed', 'timed_out']);

export interface JobDriverDeps {
  groups: RunParts;
  recorder: RunRecorder;
  scopes: RunScopes;
  evaluations: RunEvaluations;
  steps: StepDriver;
  deadlines: Deadlines;
  cancelChild(runId: string): void;
  /** Drives the one job of a workflow in code. */
  code: CodeDriver | null;
}

/** The life of a job: what it needs, its combinations, its steps in order, its end. */
export function createJobDriver(deps: JobDriverDeps) {
  const { groups, recorder, scopes, evaluations, steps, deadlines, cancelChild, code } = deps;
  const { setJob, setStep } = recorder;
  const { scopeOf } = scopes;

  /** Goes on with a job as far as it can. */
  function advanceJob(part: JobPart) {
    if (part.record.status === 'interrupted') setJob(part, 'running');
    const { timeoutMs } = part.job;
    if (timeoutMs !== null && !part.ending && deadlines.isPast(part.record.startedAt! + timeoutMs))
      stopJob(part, 'timed_out');
    if (part.ending) return endJob(part);
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

  /** Begins to end a job from outside: what is in the air is aborted. */
  function stopJob(part: JobPart, how: 'cancelled' | 'timed_out'): void {
    part.ending ??= how;
    const reason = how === 'cancelled' ? CANCELLED : RUN_TIMED_OUT;
    code?.stop(part, reason);
    for (const step of part.steps) {
      step.abort?.abort(reason);
      if (step.slot === 'asked') steps.freeSlot(step);
    }
  }

  /** Ends it once nothing of it is in the air. */
  function endJob(part: JobPart): void {
    if (part.passing || part.steps.some(({ abort }) => abort !== null)) return;
    const how = part.ending!;
    for (const step of part.steps) {
      const { status } = step.record;
      if (isFinal(status)) continue;
      if (step.wait?.runId) cancelChild(step.wait.runId);
      setStep(step, status === 'waiting' || status === 'running' ? how : 'cancelled');
    }
    if (part.record.status === 'pending') setJob(part, 'cancelled');
    else if (!isFinal(part.record.status)) {
      const error: RunError | undefined =
        how === 'timed_out'
          ? { code: 'STEP_FAILED', message: 'The job did not end in time.', details: { reason: 'timeout' } }
          : undefined;
      setJob(part, how, error);
    }
  }

  /** Goes on with all combinations of a job. */
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
        for (const part of parts)
          if (!isFinal(part.record.status) && !part.ending) stopJob(part, 'cancelled');
      }
      let running = parts.filter(
        ({ record }) => !isFinal(record.status) && record.status !== 'pending',
      ).length;
      for (const part of parts) {
        if (isFinal(part.record.status)) continue;
        if (part.record.status === 'pending' && !part.ending) {
          if (running >= group.job.maxParallel) continue;
          running++;
          setJob(part, 'running');
        }
        advanceJob(part);
        if (isFinal(part.record.status)) changed = true;
      }
    }
  }

  /** Decides whether the job runs, and in which combinations. False while what that depends on is not known. */
  function unfold(group: JobGroup): boolean {
    const { job } = group;
    const results = job.needs.map((id) => resultOf(groups.get(id)!));
    if (results.includes(null)) return false;
    const state: Scope['state'] = results.includes('cancelled')
      ? 'cancelled'
      : results.some((result) => result === 'failed' || result === 'timed_out')
        ? 'failure'
        : results.includes('skipped')
          ? 'skipped'
          : 'success';
    const single = newJobPart(job, job.id, null);
    try {
      const holds = evaluations.ask(group, job.condition, () => scopeOf(single, state));
      if (!holds) return false;
      if (!holds.value) {
        group.parts = [single];
        setJob(single, 'skipped');
        return true;
      }
      const matrix = job.matrix && evaluations.ask(group, job.matrix, () => scopeOf(single, state));
      if (matrix === undefined) return false;
      const all = matrix && combinations(matrix.value as Record<string, JsonValue>);
      requireRoom((all?.length ?? 1) * job.steps.length);
      group.parts = all?.map((values, index) => newJobPart(job, `${job.id}:${index}`, values)) ?? [single];
      if (group.parts.length === 0) {
        group.parts = [single];
        setJob(single, 'skipped');
      }
    } catch (error) {
      group.parts = [single];
      setJob(single, 'failed', evaluationFailure(error).error);
    }
    return true;
  }

  /** Throws where the matrices of a small definition unfold to more than a run may be. */
  function requireRoom(more: number): void {
    const known = [...groups.values()].reduce(
      (sum, { job, parts }) => sum + (parts?.length ?? 0) * job.steps.length,
      0,
    );
    if (known + more > MOST_STEPS)
      throw new Error(`the run would have ${known + more} steps with it; ${MOST_STEPS} are the most`);
  }

  return { advanceGroup, stopJob, endJob };
}
