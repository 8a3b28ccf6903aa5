import type { PartStatus, RunError } from '../../../contracts/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import { seconds } from '../../../kit/duration.ts';
import { messageOf, PlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import type { Random } from '../../../kit/random.ts';
import type { InboxRecord, JsonValue, LoadedRun, RunRecord } from '../../../store/ports/index.ts';
import type { CompiledWorkflow } from './compile-definition.ts';
import type { Scope } from './expressions.ts';
import { retryDelay, StepFailure, toStepFailure } from './retry-policy.ts';
import { createRunJournal, type JournalDeps } from './run-journal.ts';
import {
  combinations,
  isFailure,
  isInAir,
  type JobGroup,
  type JobPart,
  needsScope,
  newJobPart,
  partsOf,
  resultOf,
  type StepPart,
  stepIdOf,
  stepsScope,
} from './run-parts.ts';
import type { FairSlots } from './slots.ts';
import { isFinal, move } from './states.ts';
import type { StepCall, StepOutcome } from './step-kind.ts';

export interface ActiveRunDeps extends JournalDeps {
  clock: Clock;
  random: Random;
  logger: Logger;
  slots: FairSlots;
  /** How a child ended; undefined while it has not. */
  childEnd(runId: string): Promise<RunRecord | undefined>;
  cancelChild(runId: string): void;
  /** The largest output of a step, in characters of JSON. */
  mostOutput: number;
  jobStarted(): void;
  jobEnded(): void;
}

/** How the engine is left by a run. `lost`: somebody else holds it by now. */
export type Departure = 'ended' | 'parked' | 'lost' | 'abandoned';

/** A run in memory, driven until it ends or nothing of it is in the air. */
export interface ActiveRun {
  readonly run: RunRecord;
  readonly left: Promise<Departure>;
  /** Something came while it was being parked: it must be looked at again. */
  readonly wasPokedLate: boolean;
  jobs(): { total: number; failed: number };
  /** Something came, or may have: look again. */
  poke(entry?: InboxRecord): void;
  /** Durable once it resolves; false when it has ended, or was parked, meanwhile. */
  cancel(): Promise<boolean>;
  /** Lets go of it as it is: what is in the air is aborted, nothing more is written. */
  abandon(): void;
  /** Starts nothing more; once nothing is in the air it is parked, to be taken up by the next daemon. */
  drain(): void;
}

/** After an abort a step has this long to come back; then it goes on without it. */
const ABORT_GRACE_MS = seconds(10);
const FAILED_STATES = new Set<PartStatus>(['failed', 'timed_out']);

export function createActiveRun(
  loaded: LoadedRun,
  workflow: CompiledWorkflow,
  fence: number,
  deps: ActiveRunDeps,
): ActiveRun {
  const { clock, random, slots } = deps;
  const run = loaded.run;
  const journal = createRunJournal(run, deps);
  const groups = partsOf(workflow, loaded);
  let inbox = loaded.inbox;
  const input: JsonValue = JSON.parse(run.input);
  let departure: Departure | null = null;
  let ending: 'cancelled' | 'timed_out' | null = null;
  let parking = false;
  let draining = false;
  let pokedLate = false;
  let stopTimer: (() => void) | null = null;
  let launches: StepPart[] = [];
  const inFlight = new Set<JobPart>();
  const gone = Promise.withResolvers<Departure>();

  // ---- writing down -------------------------------------------------------------------------------------------------

  function setRun(
    status: RunRecord['status'],
    by: 'engine' | 'caller',
    data?: Record<string, unknown>,
  ): void {
    run.status = move('run', run.status, status, by);
    journal.touch('run');
    journal.event({ type: `run.${status}`, ...(data ? { data } : {}) });
  }

  function setJob(part: JobPart, status: PartStatus, error?: RunError): void {
    const { record } = part;
    record.status = move('job', record.status, status, 'engine');
    if (error) record.error = JSON.stringify(error);
    if (status === 'running') record.startedAt ??= clock.now();
    if (isFinal(status)) record.finishedAt = clock.now();
    countJobs(part);
    journal.touch(part);
    if (status !== 'waiting')
      journal.event({ type: `job.${status === 'running' ? 'started' : status}`, job: record.key });
  }

  function countJobs(part: JobPart): void {
    const flies = part.record.status === 'running';
    if (flies === inFlight.has(part)) return;
    if (flies) {
      inFlight.add(part);
      deps.jobStarted();
    } else {
      inFlight.delete(part);
      deps.jobEnded();
    }
  }

  function setStep(part: StepPart, status: PartStatus, data?: Record<string, unknown>): void {
    const { record } = part;
    record.status = move('step', record.status, status, 'engine');
    if (isFinal(status)) {
      record.finishedAt = clock.now();
      record.wait = null;
      record.wakeAt = null;
      part.wait = null;
      if (status === 'succeeded' && run.stalls > 0) {
        run.stalls = 0;
        journal.touch('run');
      }
    }
    journal.touch(part);
    const type = `step.${status === 'running' ? 'started' : status}`;
    journal.event({ type, job: record.jobKey, step: part.step.id, ...(data ? { data } : {}) });
  }

  function endAttempt(part: StepPart, status: PartStatus, failure: StepFailure | null): void {
    const { record } = part;
    journal.attempt({
      jobKey: record.jobKey,
      index: record.index,
      attempt: record.attempts,
      status,
      errorClass: failure?.errorClass ?? null,
      error: failure && JSON.stringify(failure.error),
      startedAt: record.attemptAt ?? clock.now(),
      finishedAt: clock.now(),
    });
  }

  function succeed(part: StepPart, output: JsonValue): void {
    const json = JSON.stringify(output ?? null);
    if (json.length > deps.mostOutput) {
      const message = `The step's output takes ${json.length} characters as JSON; a step may hand on ${deps.mostOutput}. Keep large data elsewhere and hand on where.`;
      const details = { chars: json.length, limit: deps.mostOutput };
      failStep(part, new StepFailure('validation', { code: 'PAYLOAD_TOO_LARGE', message, details }));
      return;
    }
    part.output = output ?? null;
    part.record.output = json;
    part.record.error = null;
    part.error = null;
    setStep(part, 'succeeded');
  }

  function failStep(part: StepPart, failure: StepFailure, status: 'failed' | 'timed_out' = 'failed'): void {
    part.error = failure.error;
    part.record.error = JSON.stringify(failure.error);
    setStep(part, status, { errorClass: failure.errorClass, code: failure.error.code });
    if (isFailure(part)) part.job.failed = true;
    journal.log({
      level: 'error',
      message: failure.error.message,
      job: part.record.jobKey,
      step: part.step.id,
    });
  }

  function park(
    part: StepPart,
    wait: StepPart['wait'],
    wakeAt: number | null,
    data?: Record<string, unknown>,
  ): void {
    part.wait = wait;
    part.record.wait = JSON.stringify(wait);
    part.record.wakeAt = wakeAt;
    setStep(part, 'waiting', { for: wait!.for, ...data });
  }

  // ---- what expressions see -----------------------------------------------------------------------------------------

  const runScope = {
    id: run.id,
    workflowId: run.workflowId,
    tenantId: run.tenantId,
    createdAt: run.createdAt,
    trigger: run.trigger,
    priority: run.priority,
    depth: run.depth,
  };

  function scopeOf(part: JobPart, state: Scope['state']): Scope {
    return {
      input,
      run: runScope,
      matrix: part.matrix,
      steps: stepsScope(part),
      needs: needsScope(groups, part.job.needs),
      jobs: {},
      state,
    };
  }

  const stateOf = (part: JobPart): Scope['state'] => (part.failed ? 'failure' : 'success');

  // ---- steps --------------------------------------------------------------------------------------------------------

  function callOf(part: StepPart, values: Record<string, JsonValue>, signal: AbortSignal): StepCall {
    const { record, step } = part;
    return {
      run: {
        id: run.id,
        tenantId: run.tenantId,
        workflowId: run.workflowId,
        hostId: run.hostId,
        requestId: run.requestId,
        traceId: run.traceId,
        depth: run.depth,
      },
      stepId: stepIdOf(part),
      attempt: record.attempts,
      uses: step.uses,
      input: values,
      idempotencyKey: record.idempotencyKey,
      timeoutMs: step.timeoutMs,
      signal,
      now: clock.now(),
      log(level, message) {
        journal.log({ level, message, job: record.jobKey, step: step.id });
        if (part.abort) void journal.flush();
      },
    };
  }

  /** The `with` and the key of an attempt that begins now. */
  function beginAttempt(part: StepPart): Record<string, JsonValue> {
    const { record, step } = part;
    record.attempts++;
    record.readyAt ??= clock.now();
    record.startedAt ??= clock.now();
    record.attemptAt = clock.now();
    record.wait = null;
    record.wakeAt = null;
    part.wait = null;
    const scope = scopeOf(part.job, stateOf(part.job));
    const key = step.idempotencyKey?.evaluate(scope);
    record.idempotencyKey = key === undefined ? null : String(key);
    return step.with.evaluate(scope) as Record<string, JsonValue>;
  }

  /** Runs what is done in place. */
  function runInPlace(part: StepPart): void {
    setStep(part, 'running', { attempt: part.record.attempts + 1 });
    try {
      const values = beginAttempt(part);
      const outcome = part.step.kind.run(callOf(part, values, NEVER)) as StepOutcome;
      if ('wait' in outcome) park(part, outcome.wait, outcome.until);
      else {
        succeed(part, outcome.output);
        endAttempt(part, part.record.status, null);
      }
    } catch (error) {
      const failure = evaluationFailure(error);
      endAttempt(part, 'failed', failure);
      failStep(part, failure);
    }
  }

  /** Starts an effect, or asks for the slot it needs. */
  function startEffect(part: StepPart): void {
    part.record.readyAt ??= clock.now();
    if (draining || part.slot === 'asked') return;
    if (part.step.kind.takesSlot && part.slot !== 'held') {
      if (!slots.tryTake(run.tenantId)) {
        part.slot = 'asked';
        part.withdraw = slots.ask(run.tenantId, () => {
          part.slot = 'held';
          part.withdraw = null;
          if (departure) freeSlot(part);
          else advance();
        });
        return;
      }
      part.slot = 'held';
    }
    setStep(part, 'running', { attempt: part.record.attempts + 1 });
    part.abort = new AbortController();
    launches.push(part);
  }

  function freeSlot(part: StepPart): void {
    const had = part.slot;
    part.slot = 'none';
    if (had === 'asked') part.withdraw?.();
    part.withdraw = null;
    if (had === 'held') slots.release();
  }

  async function launch(part: StepPart, values: Record<string, JsonValue> | StepFailure): Promise<void> {
    const controller = part.abort!;
    const stopTimeout = clock.after(part.step.timeoutMs, () => controller.abort(TIMED_OUT));
    let outcome: StepOutcome | StepFailure;
    try {
      if (values instanceof StepFailure) throw values;
      controller.signal.throwIfAborted();
      const work = Promise.resolve(part.step.kind.run(callOf(part, values, controller.signal)));
      outcome = await Promise.race([work, afterAbort(controller.signal)]);
    } catch (error) {
      outcome = toStepFailure(error);
    } finally {
      stopTimeout();
    }
    part.abort = null;
    freeSlot(part);
    if (departure) return;
    settleAttempt(part, outcome, controller.signal);
    advance();
  }

  /** Rejects some time after the abort: a step that does not listen is left behind. */
  function afterAbort(signal: AbortSignal): Promise<never> {
    return new Promise((_, reject) => {
      const wait = (): void => {
        clock.after(ABORT_GRACE_MS, () => reject(signal.reason));
      };
      if (signal.aborted) wait();
      else signal.addEventListener('abort', wait, { once: true });
    });
  }

  function settleAttempt(part: StepPart, outcome: StepOutcome | StepFailure, signal: AbortSignal) {
    if (!(outcome instanceof StepFailure)) {
      if ('wait' in outcome) return park(part, outcome.wait, outcome.until);
      succeed(part, outcome.output);
      endAttempt(part, part.record.status, null);
      return;
    }
    const stopped = ending ?? part.job.ending;
    if (stopped) {
      endAttempt(part, stopped, null);
      setStep(part, stopped);
      return;
    }
    const timedOut = signal.aborted && signal.reason === TIMED_OUT;
    const failure = timedOut ? stepTimeout(part) : outcome;
    endAttempt(part, timedOut ? 'timed_out' : 'failed', failure);
    const delay = retryDelay(
      part.step.retry,
      {
        failure,
        attempts: part.record.attempts,
        firstStartedAt: part.record.startedAt ?? clock.now(),
        now: clock.now(),
      },
      random,
    );
    if (delay === null) return failStep(part, failure, timedOut ? 'timed_out' : 'failed');
    part.error = failure.error;
    part.record.error = JSON.stringify(failure.error);
    park(part, { for: 'retry' }, clock.now() + delay, { errorClass: failure.errorClass, delayMs: delay });
  }

  /** Whether what a step waits for has come; then it has gone on. */
  function tryWake(part: StepPart) {
    const { wait, record } = part;
    const isDue = record.wakeAt !== null && record.wakeAt <= clock.now();
    if (wait?.for === 'retry' && isDue) return startEffect(part);
    if (wait?.for === 'time' && isDue) {
      succeed(part, { waitedUntil: record.wakeAt });
      return endAttempt(part, 'succeeded', null);
    }
    if (wait?.for === 'child') return lookAtChild(part);
    const entry = entryFor(part);
    if (entry) return useEntry(part, entry);
    if (isDue && (wait?.for === 'signal' || wait?.for === 'approval')) {
      const what = wait.for === 'signal' ? `The signal "${wait.name}"` : 'The approval';
      const failure = new StepFailure('timeout', {
        code: 'STEP_FAILED',
        message: `${what} did not come in time.`,
        details: { reason: 'timeout', waitedFor: wait.for },
      });
      endAttempt(part, 'timed_out', failure);
      failStep(part, failure, 'timed_out');
    }
  }

  function entryFor({ wait, record, job, step }: StepPart): InboxRecord | undefined {
    if (wait?.for !== 'signal' && wait?.for !== 'approval' && wait?.for !== 'decision') return undefined;
    const name = wait.for === 'signal' ? wait.name : `${job.record.key}.${step.id}`;
    return inbox.find(
      (entry) => entry.kind === wait.for && entry.name === name && record.status === 'waiting',
    );
  }

  function useEntry(part: StepPart, entry: InboxRecord) {
    inbox = inbox.filter((other) => other !== entry);
    journal.take(entry.n, stepIdOf(part));
    const payload = JSON.parse(entry.payload);
    if (entry.kind === 'signal') {
      succeed(part, { payload, receivedAt: entry.at });
      return endAttempt(part, part.record.status, null);
    }
    if (entry.kind === 'decision' && payload.action === 'retry') return startEffect(part);
    const accepted = entry.kind === 'approval' ? payload.approved : payload.action === 'succeed';
    if (accepted) {
      succeed(part, entry.kind === 'approval' ? payload : payload.output);
      if (entry.kind === 'approval') endAttempt(part, 'succeeded', null);
      return;
    }
    const failure = new StepFailure('code', {
      code: 'STEP_FAILED',
      message:
        entry.kind === 'approval'
          ? 'The approval was refused.'
          : 'An operator declared the interrupted step failed.',
      details: { reason: entry.kind === 'approval' ? 'refused' : 'interrupted', ...payload },
    });
    if (entry.kind === 'approval') endAttempt(part, 'failed', failure);
    failStep(part, failure);
  }

  function lookAtChild(part: StepPart) {
    if (draining || part.looking || !part.wait?.runId || !askChildren) return;
    part.looking = true;
    deps
      .childEnd(part.wait.runId)
      .then((child) => {
        part.looking = false;
        if (departure || !child || part.record.status !== 'waiting') return;
        const { runId } = part.wait!;
        if (child.status === 'succeeded') {
          succeed(part, child.output === null ? null : JSON.parse(child.output));
          endAttempt(part, part.record.status, null);
        } else {
          const failure = new StepFailure('code', {
            code: 'STEP_FAILED',
            message: `The workflow "${child.workflowId}" (run ${runId}) ended as ${child.status}.`,
            details: { runId, status: child.status, error: child.error && JSON.parse(child.error) },
          });
          endAttempt(part, 'failed', failure);
          failStep(part, failure);
        }
      })
      .catch((error: unknown) => {
        part.looking = false;
        deps.logger.error(`The end of child ${part.wait?.runId} could not be read`, { error });
      })
      .finally(() => {
        askChildren = false;
        if (!departure) advance();
        askChildren = true;
      });
  }
  /** False for the look after an answer: asking again at once would never end. */
  let askChildren = true;

  /** A step that a crash caught in mid-air: may it run again? */
  function goOn(part: StepPart) {
    const { step, record } = part;
    if (record.idempotencyKey !== null || mayRepeat(part)) return startEffect(part);
    const message = `The step was interrupted in mid-air (attempt ${record.attempts}) and may have had its effect. Say whether it is to be retried, taken as succeeded, or failed.`;
    park(part, { for: 'decision', message }, null);
    journal.log({ level: 'warn', message, job: record.jobKey, step: step.id });
  }

  function mayRepeat({ step }: StepPart): boolean {
    return step.idempotent ?? step.kind.isIdempotent(step.uses, step.rawWith);
  }

  // ---- jobs ---------------------------------------------------------------------------------------------------------

  /** Goes on with a job as far as it can. */
  function advanceJob(part: JobPart) {
    if (part.record.status === 'interrupted') setJob(part, 'running');
    const { timeoutMs } = part.job;
    if (timeoutMs !== null && !part.ending && clock.now() >= part.record.startedAt! + timeoutMs)
      stopJob(part, 'timed_out');
    if (part.ending) return endJob(part);
    for (const step of part.steps) {
      advanceStep(step, part);
      if (!isFinal(step.record.status)) {
        const status = step.record.status === 'waiting' ? 'waiting' : 'running';
        if (part.record.status !== status) setJob(part, status);
        return;
      }
    }
    finishJob(part);
  }

  function advanceStep(part: StepPart, job: JobPart) {
    const { record, step } = part;
    if (isFinal(record.status) || part.abort !== null || part.looking) return;
    if (record.status === 'waiting') return tryWake(part);
    if (record.status === 'interrupted') return goOn(part);
    if (record.status !== 'pending') return;
    try {
      if (!step.condition.holds(scopeOf(job, stateOf(job)))) return setStep(part, 'skipped');
    } catch (error) {
      return failStep(part, evaluationFailure(error));
    }
    if (step.kind.mode === 'effect') startEffect(part);
    else runInPlace(part);
    // What is in the inbox already must not be waited for.
    if (part.wait) tryWake(part);
  }

  function finishJob(part: JobPart) {
    if (part.record.status === 'waiting') setJob(part, 'running');
    if (!part.failed) {
      try {
        part.outputs = part.job.outputs.evaluate(scopeOf(part, 'success')) as Record<string, JsonValue>;
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
    for (const step of part.steps) {
      step.abort?.abort(how === 'cancelled' ? CANCELLED : RUN_TIMED_OUT);
      if (step.slot === 'asked') freeSlot(step);
    }
  }

  /** Ends it once nothing of it is in the air. */
  function endJob(part: JobPart): void {
    if (part.steps.some(({ abort }) => abort !== null)) return;
    const how = part.ending!;
    for (const step of part.steps) {
      const { status } = step.record;
      if (isFinal(status)) continue;
      if (step.wait?.runId) deps.cancelChild(step.wait.runId);
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

  /** Decides whether the job runs, and in which combinations. False while what it needs has not ended. */
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
      if (!job.condition.holds(scopeOf(single, state))) {
        group.parts = [single];
        setJob(single, 'skipped');
        return true;
      }
      const matrix = job.matrix?.evaluate(scopeOf(single, state));
      group.parts = matrix
        ? combinations(matrix as Record<string, JsonValue>).map((values, index) =>
            newJobPart(job, `${job.id}:${index}`, values),
          )
        : [single];
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

  // ---- the run ------------------------------------------------------------------------------------------------------

  const allJobs = (): JobPart[] => [...groups.values()].flatMap(({ parts }) => parts ?? []);

  function advance(): void {
    if (departure || parking || isFinal(run.status)) {
      pokedLate = true;
      return;
    }
    if (run.deadlineAt !== null && clock.now() >= run.deadlineAt) ending ??= 'timed_out';
    if (ending) {
      for (const group of groups.values()) {
        group.parts ??= [newJobPart(group.job, group.job.id, null)];
        for (const part of group.parts) {
          if (isFinal(part.record.status)) continue;
          stopJob(part, ending);
          endJob(part);
        }
      }
    } else for (const group of groups.values()) advanceGroup(group);
    conclude();
    void commit();
  }

  /** Ends or parks the run when nothing of it is in the air. */
  function conclude() {
    const jobs = allJobs();
    if (jobs.some(({ steps }) => steps.some(isInAir))) return;
    const over = [...groups.values()].every((group) => resultOf(group) !== null);
    if (!over) {
      parking = true;
      run.wakeAt = draining ? clock.now() : nextWake();
      letGo();
      setRun('waiting', 'engine', run.wakeAt === null ? undefined : { wakeAt: run.wakeAt });
      return;
    }
    run.wakeAt = null;
    run.finishedAt = clock.now();
    letGo();
    if (ending) {
      if (ending === 'timed_out')
        run.error = JSON.stringify({
          code: 'STEP_FAILED',
          message: `The run did not end within ${workflow.definition.timeoutMs} ms.`,
          details: { reason: 'timeout' },
        } satisfies RunError);
      return setRun(ending, 'engine');
    }
    const failed = jobs.find((part) => FAILED_STATES.has(part.record.status) && !part.job.continueOnError);
    if (failed) {
      run.error = failed.record.error;
      return setRun('failed', 'engine', { job: failed.record.key });
    }
    try {
      run.output = JSON.stringify(outputOf());
      setRun('succeeded', 'engine');
    } catch (error) {
      run.error = JSON.stringify(evaluationFailure(error).error);
      setRun('failed', 'engine');
    }
  }

  function outputOf(): JsonValue {
    const ids = [...groups.keys()];
    if (workflow.outputs) {
      const jobs = needsScope(groups, ids);
      return workflow.outputs.evaluate({
        input,
        run: runScope,
        matrix: {},
        steps: {},
        needs: {},
        jobs,
        state: 'success',
      });
    }
    const outputs = needsScope(groups, ids) as Record<string, { outputs: Record<string, JsonValue> }>;
    const withSome = ids.filter((id) => Object.keys(outputs[id]!.outputs).length > 0);
    return withSome.length === 0
      ? null
      : Object.fromEntries(withSome.map((id) => [id, outputs[id]!.outputs]));
  }

  function letGo(): void {
    run.fence = null;
    run.ready = false;
    run.reason = null;
  }

  /** What is being ended already needs no reminder: one that is past would come again and again. */
  function nextWake(): number | null {
    const times = allJobs().flatMap(({ record, job, steps, ending: stopped }) => [
      ...steps.map(({ record: own, slot }) =>
        own.status === 'waiting' && slot === 'none' ? own.wakeAt : null,
      ),
      job.timeoutMs !== null && record.startedAt !== null && !stopped && !isFinal(record.status)
        ? record.startedAt + job.timeoutMs
        : null,
    ]);
    const known = [...times, ending ? null : run.deadlineAt].filter((time) => time !== null);
    return known.length === 0 ? null : Math.min(...known);
  }

  /** Writes what happened, then starts what may begin only after that. */
  async function commit() {
    const begun = launches.map((part) => [part, valuesOf(part)] as const);
    launches = [];
    const mustWait =
      journal.isClaiming || begun.some(([part]) => !mayRepeat(part) && part.record.idempotencyKey === null);
    const durable = journal.flush();
    const leaves = parking || isFinal(run.status);
    if (!mustWait && !leaves) {
      for (const [part, values] of begun) void launch(part, values);
      armTimer();
      if (!(await durable)) lose();
      return;
    }
    if (!(await durable)) return lose();
    if (leaves) return leave(parking ? 'parked' : 'ended');
    for (const [part, values] of begun) void launch(part, values);
    armTimer();
  }

  function valuesOf(part: StepPart): Record<string, JsonValue> | StepFailure {
    try {
      return beginAttempt(part);
    } catch (error) {
      return evaluationFailure(error);
    }
  }

  function armTimer(): void {
    stopTimer?.();
    stopTimer = null;
    if (departure || parking) return;
    const wake = nextWake();
    if (wake !== null) stopTimer = clock.after(Math.max(0, wake - clock.now()), advance);
  }

  function lose(): void {
    if (!departure) quit('lost');
  }

  function leave(how: 'parked' | 'ended'): void {
    if (departure) return;
    departure = how;
    stopTimer?.();
    settleCounts();
    gone.resolve(how);
  }

  function quit(how: 'lost' | 'abandoned'): void {
    departure = how;
    journal.abandon();
    stopTimer?.();
    for (const { steps } of allJobs())
      for (const step of steps) {
        step.abort?.abort(SHUT_DOWN);
        freeSlotUnlessRunning(step);
      }
    settleCounts();
    gone.resolve(how);
  }

  /** A slot that is held by work in the air is given back when that has come back. */
  function freeSlotUnlessRunning(step: StepPart): void {
    if (step.abort === null || step.slot === 'asked') freeSlot(step);
  }

  function settleCounts(): void {
    for (const _ of inFlight) deps.jobEnded();
    inFlight.clear();
  }

  function begin(): void {
    const isFirst = run.startedAt === null;
    run.fence = fence;
    run.startedAt ??= clock.now();
    if (run.deadlineAt === null && workflow.definition.timeoutMs !== undefined)
      run.deadlineAt = run.startedAt + workflow.definition.timeoutMs;
    run.ready = false;
    run.reason = null;
    run.wakeAt = null;
    run.status = move('run', run.status, 'running', 'engine');
    journal.touch('run');
    journal.event({ type: isFirst ? 'run.started' : 'run.continued' });
    for (const part of allJobs()) countJobs(part);
    advance();
  }
  begin();

  return {
    run,
    left: gone.promise,
    get wasPokedLate() {
      return pokedLate;
    },
    jobs() {
      const jobs = allJobs();
      return {
        total: jobs.length,
        failed: jobs.filter(({ record }) => FAILED_STATES.has(record.status)).length,
      };
    },
    poke(entry) {
      if (entry && !inbox.some(({ n }) => n === entry.n)) inbox = [...inbox, entry];
      if (departure || parking) pokedLate = true;
      else advance();
    },
    async cancel() {
      if (departure || parking || isFinal(run.status) || run.status === 'cancelling') return false;
      ending = 'cancelled';
      setRun('cancelling', 'caller');
      const durable = journal.flush();
      advance();
      return durable;
    },
    abandon() {
      if (!departure) quit('abandoned');
    },
    drain() {
      draining = true;
      for (const { steps } of allJobs()) for (const step of steps) if (step.slot === 'asked') freeSlot(step);
      advance();
    },
  };
}

const NEVER = new AbortController().signal;
const TIMED_OUT = new PlatformError('EXECUTION_TIMEOUT', 'The step did not end in time.');
const RUN_TIMED_OUT = new PlatformError('EXECUTION_TIMEOUT', 'The run or its job did not end in time.');
const CANCELLED = new PlatformError('EXECUTION_ERROR', 'The run was cancelled.');
const SHUT_DOWN = new PlatformError('SERVICE_UNAVAILABLE', 'The workflow service is stopping.');

function stepTimeout({ step }: StepPart): StepFailure {
  return new StepFailure('timeout', {
    code: 'EXECUTION_TIMEOUT',
    message: `The step did not end within ${step.timeoutMs} ms.`,
    details: { timeoutMs: step.timeoutMs },
  });
}

/** An expression that failed, or a value that a step cannot take. */
function evaluationFailure(error: unknown): StepFailure {
  if (error instanceof StepFailure) return error;
  return new StepFailure('validation', { code: 'VALIDATION_ERROR', message: messageOf(error), details: {} });
}
