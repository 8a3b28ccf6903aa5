import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Deadlines } from '../../../../kit/time/deadlines.ts';
import { hours, seconds } from '../../../../kit/time/duration.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import { isOwnStep } from '../definition/compile-code.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import type { PluginWaits } from '../engine/plugin-waits.ts';
import type { Hold } from '../run/clean-up-limit.ts';
import type { JobPart, StepPart } from '../run/run-parts.ts';
import { CANCELLED } from '../run/run-state.ts';
import { isFinal } from '../states.ts';
import { Interrupted, wasKilled } from '../steps/interrupted.ts';
import { PluginAway } from '../steps/plugin-away.ts';
import { StepFailure } from '../steps/retry-policy.ts';
import type { StepDriver } from '../steps/step-driver.ts';
import { type CodePass, createCodePass, LONGEST_STEP_MS } from './code-pass.ts';
import { createCodeSteps } from './code-steps.ts';
import { type Came, errorOf, failureInAir, outputOf, type Verdict } from './code-verdict.ts';
import { PassRunner, type PassRunnerDeps } from './pass-runner.ts';
import { isBehindSuspect } from './suspect-steps.ts';

export interface CodeDriverDeps extends Omit<PassRunnerDeps, 'code'> {
  workflow: CompiledWorkflow;
  steps: StepDriver;
  deadlines: Deadlines;
  mostOutput: number;
  pluginWaits: PluginWaits;
}

/** Maximum duration of a replay. Together with RECYCLE_MS it leaves each step its longest duration. */
const PASS_MS = hours(2);
const RECYCLE_MS = PASS_MS - LONGEST_STEP_MS;
/**
 * Maximum retries of a replay that cannot run (no host, no capacity, a killed process). Backoff is at most a minute.
 */
const MOST_FAILURES = 10;
const PASSING_CLASSES = new Set(['network', 'rate_limit', 'server']);

/**
 * Drives the job of a workflow in code. Each replay starts the function at its first line, returns recorded results for
 * finished steps, and ends when all branches wait. Between replays only rows exist.
 * @spec docs/workflows.md "Workflows in code"
 */
export function createCodeDriver(deps: CodeDriverDeps) {
  const { run, journal, recorder, state, steps, clock, random } = deps;
  const code = deps.workflow.code!;
  const found = createCodeSteps({ run, journal, code });
  const runner = new PassRunner({ ...deps, code });
  let pass: CodePass | null = null;
  let verdict: Verdict | null = null;
  /** Whether a replay is due; null until the job was first read. */
  let due: boolean | null = null;
  /** Steps whose outcome the function waits for. */
  let owed: ReadonlySet<StepPart> = new Set();
  let failures = 0;
  /** Processes lost during replays since the run was claimed. */
  let losses = 0;
  let stopResting: (() => void) | null = null;
  /** Set when the plugin was unavailable at the start of a replay; cleared by a reload or at `wakeAt`. */
  let away: { wakeAt: number } | null = null;
  /** Forces a replay although the job waits: the plugin was unavailable, or a crash may have lost a due replay. */
  let mustReplay = run.reason === 'plugin' || run.status === 'queued';
  /** Whether the plugin was unavailable at the latest replay. */
  let wasAway = run.reason === 'plugin';
  /** Set by `stop`: neither the function nor its clean-up continues. */
  let isStopped = false;
  let knowsEnding = false;
  /** Whether a step was cancelled, which tells the function that its run is ending; null until the job ends. */
  let wasTold: boolean | null = null;

  /** Schedules a replay unless the job waits. */
  function learn(job: JobPart): void {
    if (due !== null) return;
    due = job.record.status !== 'waiting' || mustReplay;
    mustReplay = false;
    owed = new Set(job.steps.filter(({ record }) => !isFinal(record.status)));
  }

  /** Cancels all steps outside the clean-up; their errors tell the function that its run is ending. */
  function cleanUp(job: JobPart): void {
    learn(job);
    if (!knowsEnding) {
      knowsEnding = true;
      stopRest();
      if (!pass) due = true;
    }
    for (const part of job.steps)
      if (!part.step.cleansUp && !isFinal(part.record.status)) steps.endStep(part, 'cancelled');
    advance(job);
  }

  function stopRest(): void {
    stopResting?.();
    stopResting = null;
  }

  function advance(job: JobPart): void {
    learn(job);
    if (verdict) {
      finish(job, verdict);
      return;
    }
    for (const part of job.steps) if (mayAdvance(part)) steps.advanceStep(part, job);
    pass?.answer();
    if (away && deps.deadlines.isPast(away.wakeAt)) away = null;
    const wanted = !away && (due || found.canGoOn(owed, isReady));
    if (!pass && !stopResting && wanted && !state.draining) begin(job);
    note(job);
    const status = job.passing || wanted ? 'running' : 'waiting';
    if (job.record.status !== status) recorder.setJob(job, status);
  }

  function note(job: JobPart): void {
    job.passing = pass !== null || ((stopResting !== null || runner.isQueued) && !state.draining);
  }

  /** Steps of the function itself advance only when it requests them; other steps advance on their own. */
  function mayAdvance(part: StepPart): boolean {
    if (!isOwnStep(part.step)) return true;
    return pass?.isAsked(part) === true && !isClosing() && !isBehindSuspect(part);
  }

  function isClosing(): boolean {
    return state.draining || (pass !== null && clock.monotonic() >= pass.startedAt + RECYCLE_MS);
  }

  function isReady({ record, step, wait, job }: StepPart): boolean {
    if (isFinal(record.status)) return true;
    if (!isOwnStep(step)) return false;
    if (record.status !== 'waiting') return record.status !== 'running';
    if (wait?.for === 'retry') return record.wakeAt !== null && deps.deadlines.isPast(record.wakeAt);
    const name = `${job.record.key}.${step.id}`;
    return state.inbox.some((entry) => entry.kind === wait?.for && entry.name === name);
  }

  // ---- replays ----------------------------------------------------------------------------------------------------

  function begin(job: JobPart): void {
    if (!runner.takeSlot()) return;
    due = false;
    const own = createCodePass({
      run,
      token: random.secret(16),
      clock,
      flush: journal.flush,
      known: () => found.known(job),
      partOf: (step) => {
        try {
          return found.partOf(job, step);
        } catch (error) {
          if (error instanceof PlatformError && found.isFatal(error)) fail(own, error);
          throw error;
        }
      },
      isReady,
      isClosing,
      begun: () => runner.begun(),
      advance: state.advance,
    });
    pass = own;
    owed = own.owed;
    void go(job, own);
  }

  function fail(own: CodePass, { code: name, message, details }: PlatformError): void {
    verdict ??= { error: { code: name, message, details } };
    own.abort(CANCELLED);
  }

  async function go(job: JobPart, own: CodePass): Promise<void> {
    const ended = await runner.run(own, {
      ...found.origin(job),
      jobKey: job.record.key,
      remembered: job.steps.filter(({ record }) => isFinal(record.status)).length,
      knows: job.steps.length > 0,
      timeoutMs: PASS_MS,
      alone: losses > 0,
    });
    const inAir = own.close(ended instanceof StepFailure ? failureInAir(own, ended) : null);
    pass = null;
    runner.end();
    note(job);
    if (state.departure) return;
    wasAway = ended instanceof PluginAway;
    if (!verdict && !isStopped) {
      if (ended instanceof StepFailure) takeFailure(job, own, ended, inAir);
      else judge(job, own, ended);
    }
    state.advance();
  }

  function judge(job: JobPart, own: CodePass, ended: Came): void {
    failures = 0;
    if (ended.end === 'returned') {
      const missed = found.missedBy(job, own.met, ended.missed);
      verdict = missed ? { error: missed } : outputOf(ended.output as JsonValue, deps.mostOutput);
    } else if (ended.end === 'strayed') verdict = { error: found.strayedFrom(job, own.met, ended.missed) };
    else if (ended.end === 'threw') verdict = { error: errorOf(job, ended), isCancel: ended.cancelled };
    else if (owed.size === 0 && own.settledSteps > 0) due = true;
    else if (owed.size === 0)
      verdict = {
        error: {
          code: 'EXECUTION_ERROR',
          message: "The workflow's function ended without a result, and waits for nothing.",
          details: {},
        },
      };
  }

  /** Handles a failed replay, which fails its in-flight steps. Without any, it is retried if that may help. */
  function takeFailure(job: JobPart, own: CodePass, failure: StepFailure, inAir: readonly StepPart[]): void {
    const { error, errorClass } = failure;
    journal.log({ level: 'warn', message: error.message, job: job.record.key });
    if (failure instanceof Interrupted || inAir.length > 1) losses++;
    if (failure instanceof PluginAway) {
      const pause = deps.pluginWaits.add(failure.pluginId, run.id, error.message);
      away = { wakeAt: deps.deadlines.note(clock.now() + pause) };
      owed = new Set([...own.owed, ...inAir]);
      due = true;
      return;
    }
    if (inAir.length > 0 || own.settledSteps > 0) {
      failures = 0;
      owed = new Set([...own.owed, ...inAir]);
      due = inAir.length === 0;
      return;
    }
    const mayPass = failure instanceof Interrupted || wasKilled(failure) || PASSING_CLASSES.has(errorClass);
    if (!mayPass || ++failures > MOST_FAILURES) {
      verdict = { error };
      return;
    }
    const pause = Math.max(failure.retryAfterMs ?? 0, seconds(Math.min(60, 2 ** (failures - 1))));
    stopResting = clock.after(pause, () => {
      stopResting = null;
      due = true;
      state.advance();
    });
  }

  // ---- the end ------------------------------------------------------------------------------------------------------

  /** Ends the job once none of its steps is in flight. */
  function finish(job: JobPart, how: Verdict): void {
    if (pass) return;
    wasTold ??= job.steps.some(({ record }) => record.status === 'cancelled');
    const open = job.steps.filter(({ record }) => !isFinal(record.status));
    for (const part of open) steps.stopStep(part, 'cancelled');
    if (open.some(({ abort }) => abort !== null)) return;
    for (const part of open) steps.endStep(part, 'cancelled', true);
    note(job);
    if (job.record.status === 'waiting') recorder.setJob(job, 'running');
    if ('output' in how) {
      job.outputs = { result: how.output };
      job.record.outputs = JSON.stringify(job.outputs);
    }
    // A function that never learned of the ending completed its work, so its own outcome counts.
    if (job.record.ending && wasTold) {
      recorder.setJob(job, job.record.ending, 'error' in how && !how.isCancel ? how.error : undefined);
    } else if ('output' in how) recorder.setJob(job, 'succeeded');
    else {
      job.failed = true;
      recorder.setJob(job, 'failed', how.error);
    }
  }

  return {
    advance,
    cleanUp,
    /** Set while the plugin is unavailable, so no replay can begin. */
    get away() {
      return away;
    },
    /** Reason why a replay cannot begin. */
    get hold(): Hold {
      return pass?.hasBegun ? null : wasAway ? 'plugin' : pass || runner.isQueued ? 'others' : null;
    },
    /** Retries a replay that waits for its plugin, after a reload. */
    tryPlugin(): void {
      away = null;
    },
    /** Aborts in-flight work when the run or job ends or leaves memory. */
    stop(job: JobPart, reason: unknown): void {
      isStopped = true;
      stopRest();
      if (pass) pass.abort(reason);
      else runner.freeSlot();
      note(job);
    },
  };
}
export type CodeDriver = ReturnType<typeof createCodeDriver>;
