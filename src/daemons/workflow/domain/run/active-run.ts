import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { Deadlines } from '../../../../kit/time/deadlines.ts';
import type { InboxRecord, LoadedRun, RunRecord } from '../../../../store/ports/index.ts';
import { createCodeDriver } from '../code/code-driver.ts';
import type { PassDesk } from '../code/pass-desk.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { PluginWaits } from '../engine/plugin-waits.ts';
import type { FairSlots } from '../engine/slots.ts';
import { isFinal, move } from '../states.ts';
import { evaluationFailure } from '../steps/retry-policy.ts';
import { createStepDriver } from '../steps/step-driver.ts';
import { CleanUp } from './clean-up.ts';
import { CleanUpLimit } from './clean-up-limit.ts';
import { endingError } from './ending-error.ts';
import { createJobDriver, FAILED_STATES } from './job-driver.ts';
import { OpenChildren } from './open-children.ts';
import { createRunEvaluations } from './run-evaluations.ts';
import { createRunJournal, type JournalDeps } from './run-journal.ts';
import { isInAir, type JobPart, partsOf, resultOf } from './run-parts.ts';
import { createRunRecorder, type RunRecorderDeps } from './run-recorder.ts';
import { createRunScopes } from './run-scopes.ts';
import { coalesced, type Departure, type RunState, SHUT_DOWN } from './run-state.ts';
import { wakesOf } from './run-wakes.ts';
import { waitReasonOf } from './wait-reason.ts';

export interface ActiveRunDeps extends JournalDeps, RunRecorderDeps {
  clock: Clock;
  deadlines: Deadlines;
  random: Random;
  logger: Logger;
  slots: FairSlots;
  evaluator: Evaluator;
  pluginWaits: PluginWaits;
  /** The run was ready before this boot. */
  isFromBefore: boolean;
  /** Returns those of the given runs that have ended. */
  finishedRuns(ids: readonly string[]): Promise<RunRecord[]>;
  /** Returns the ids of a run's unfinished children. */
  openChildren(runId: string): Promise<string[]>;
  /** Cancels a child; durable once resolved. Resolves to false when the cancel failed. */
  cancelChild(runId: string): Promise<boolean>;
  /** Default clean-up limit of an ending run, in ms; `cleanUpTimeoutMs` of the definition overrides it. */
  cleanUpMs: number;
  /** Maximum wait of a clean-up for a plugin, in ms. */
  maxPluginWaitMs: number;
  /** Runs the functions of code workflows. */
  passes: PassDesk;
}

/** News for a run: an inbox entry, or ids of children that have ended. */
export interface RunNews {
  entry?: InboxRecord;
  endedChildren?: Iterable<string>;
}

/** A run in memory, advanced until it ends or has no work in flight. */
export interface ActiveRun {
  readonly run: RunRecord;
  readonly left: Promise<Departure>;
  /** News arrived while the run was being parked, so the engine must check it again. */
  readonly wasPokedLate: boolean;
  /** Time until the next wake-up, in ms; Infinity without one. */
  wakesInMs(): number;
  jobs(): { total: number; failed: number };
  /** Delivers possible news and advances the run. */
  poke(news?: RunNews): void;
  /** Retries waits for plugins after a plugin reload. */
  pluginsChanged(): void;
  /** Cancels the run; durable once resolved. False when the run has ended, was parked or is being cancelled. */
  cancel(): Promise<boolean>;
  /** Drops the run: aborts in-flight work and writes nothing more. */
  abandon(): void;
  /** Starts nothing more and parks the run when its in-flight work settles; the next daemon resumes it. */
  drain(): void;
}

export function createActiveRun(
  loaded: LoadedRun,
  workflow: CompiledWorkflow,
  fence: number,
  deps: ActiveRunDeps,
): ActiveRun {
  const { clock, deadlines } = deps;
  const { run } = loaded;
  const state: RunState = {
    departure: null,
    ending: run.ending,
    draining: false,
    inbox: loaded.inbox,
    endedChildren: new Set(),
    launches: [],
    advance,
    advanceSoon: coalesced(advance),
  };
  const journal = createRunJournal(run, deps);
  const recorder = createRunRecorder(loaded, journal, deps);
  const groups = partsOf(workflow, loaded);
  const scopes = createRunScopes(run, workflow, groups);
  const evaluations = createRunEvaluations({ ...deps, run, journal, recorder, state });
  const steps = createStepDriver({ ...deps, run, journal, recorder, scopes, evaluations, state });
  const code = workflow.code
    ? createCodeDriver({ ...deps, run, workflow, journal, recorder, state, steps })
    : null;
  const limitMs = workflow.definition.cleanUpTimeoutMs ?? deps.cleanUpMs;
  const limit = new CleanUpLimit({ ...deps, limitMs });
  const children = new OpenChildren({ ...deps, run, state });
  const cleanUp = new CleanUp({ run, state, journal, recorder, limit, children, code });
  const jobs = createJobDriver({
    ...{ groups, recorder, scopes, evaluations, steps, state },
    ...{ journal, deadlines, limit, code },
  });
  /** Inbox entries seen so far: an entry loaded with the run may be announced again after a step consumed it. */
  const seen = new Set(loaded.inbox.map(({ n }) => n));
  for (const n of seen) journal.saw(n);
  let parking = false;
  let pokedLate = false;
  let stopTimer: (() => void) | null = null;
  const gone = Promise.withResolvers<Departure>();

  const allJobs = (): JobPart[] => [...groups.values()].flatMap(({ parts }) => parts ?? []);

  function advance(): void {
    if (state.departure || parking || isFinal(run.status)) {
      pokedLate = true;
      return;
    }
    if (!state.ending && run.deadlineAt !== null && deadlines.isPast(run.deadlineAt))
      cleanUp.begin('timed_out', 'engine');
    const isOverdue = cleanUp.isOverdue(allJobs());
    for (const group of groups.values()) {
      if (isOverdue) jobs.stopGroup(group, state.ending!);
      else jobs.advanceGroup(group);
    }
    cleanUp.count(allJobs());
    conclude();
    void commit();
  }

  /** Ends or parks the run when it has no work in flight. */
  function conclude() {
    const parts = allJobs();
    if (parts.some(({ steps, passing }) => passing || steps.some(isInAir))) return;
    const over = [...groups.values()].every((group) => resultOf(group) !== null);
    if (evaluations.isPending && !(over && state.ending)) return;
    const isAlone = !over || !state.ending || children.haveEnded(parts);
    if (isAlone === undefined) return;
    if (!over || !isAlone) {
      parking = true;
      run.wakeAt = state.draining ? clock.now() : Math.min(...wakes());
      if (run.wakeAt === Number.POSITIVE_INFINITY) run.wakeAt = null;
      letGo();
      run.reason = isAlone ? (code?.away ? 'plugin' : waitReasonOf(parts)) : 'child';
      if (state.ending) return cleanUp.park();
      return recorder.setRun('waiting', 'engine', run.wakeAt === null ? undefined : { wakeAt: run.wakeAt });
    }
    // Code without another step never learns of the cancellation, so the run ends with its own result.
    const wasUntold = workflow.code && ['succeeded', 'failed'].includes(parts[0]?.record.status ?? '');
    if (state.ending && !wasUntold) {
      end();
      const { timeoutMs } = workflow.definition;
      const error = endingError({ ending: state.ending, parts, cleanUp: cleanUp.outcome(parts), timeoutMs });
      run.error = error && JSON.stringify(error);
      const result = parts[0]?.outputs.result;
      if (workflow.code && result !== undefined) run.output = JSON.stringify(result);
      return recorder.setRun(state.ending, 'engine');
    }
    const failed = parts.find((part) => FAILED_STATES.has(part.record.status) && !part.job.continueOnError);
    if (failed) {
      end();
      run.error = failed.record.error;
      return recorder.setRun('failed', 'engine', { job: failed.record.key });
    }
    try {
      const output = scopes.outputOf(evaluations);
      if (!output) return;
      end();
      run.output = JSON.stringify(output.value);
      recorder.setRun('succeeded', 'engine');
    } catch (error) {
      end();
      run.error = JSON.stringify(evaluationFailure(error).error);
      recorder.setRun('failed', 'engine');
    }
  }

  function end(): void {
    run.wakeAt = null;
    run.finishedAt = clock.now();
    letGo();
  }

  function letGo(): void {
    run.inFlight = false;
    run.fence = null;
    run.ready = false;
    run.reason = null;
  }

  const wakes = (): number[] => wakesOf(allJobs(), { run, state, cleanUp, code, deadlines });

  /** Time to the first wake-up, in ms. Deadlines ignore clock changes, so the earliest `wakeAt` is not always first. */
  const wakesInMs = (): number => Math.min(...wakes().map(deadlines.leftMs));

  /** Writes all changes before it launches steps, since each step depends on earlier results being durable. */
  async function commit() {
    const begun = state.launches;
    state.launches = [];
    const leaves = parking || isFinal(run.status);
    if (begun.length === 0 && !leaves) armTimer();
    const durable = await journal.flush();
    if (!durable) lose();
    if (leaves && durable) return leave(parking ? 'parked' : 'ended');
    for (const part of begun) {
      if (state.departure) steps.drop(part);
      else void steps.launch(part);
    }
    if (begun.length > 0) armTimer();
  }

  function armTimer(): void {
    stopTimer?.();
    stopTimer = null;
    if (state.departure || parking) return;
    const leftMs = wakesInMs();
    if (Number.isFinite(leftMs)) stopTimer = clock.after(leftMs, advance);
  }

  function lose(): void {
    if (!state.departure) quit('lost');
  }

  function leave(how: 'parked' | 'ended'): void {
    if (state.departure) return;
    state.departure = how;
    stopTimer?.();
    recorder.settleCounts();
    gone.resolve(how);
  }

  function quit(how: 'lost' | 'abandoned'): void {
    state.departure = how;
    journal.abandon();
    stopTimer?.();
    for (const part of allJobs()) {
      code?.stop(part, SHUT_DOWN);
      for (const step of part.steps) {
        step.abort?.abort(SHUT_DOWN);
        // In-flight work releases its slot when it settles.
        if (step.abort === null || step.slot === 'asked') steps.freeSlot(step);
      }
    }
    recorder.settleCounts();
    gone.resolve(how);
  }

  /** Makes all waits for plugins due now. */
  function tryPlugins(): void {
    deps.pluginWaits.remove(run.id);
    for (const { record, wait } of allJobs().flatMap(({ steps: all }) => all))
      if (record.status === 'waiting' && wait?.for === 'plugin') record.wakeAt = clock.now();
    code?.tryPlugin();
  }

  function begin(): void {
    const isFirst = run.startedAt === null;
    run.fence = fence;
    run.startedAt ??= clock.now();
    if (run.deadlineAt === null && workflow.definition.timeoutMs !== undefined)
      run.deadlineAt = deadlines.note(run.startedAt + workflow.definition.timeoutMs);
    run.ready = false;
    run.reason = null;
    run.wakeAt = null;
    tryPlugins();
    if (!state.ending) run.status = move('run', run.status, 'running', 'engine');
    journal.touch('run');
    journal.event({ type: isFirst ? 'run.started' : 'run.continued' });
    for (const part of allJobs()) recorder.countJobs(part);
    advance();
  }
  begin();

  return {
    run,
    left: gone.promise,
    get wasPokedLate() {
      return pokedLate;
    },
    wakesInMs,
    jobs() {
      const parts = allJobs();
      return {
        total: parts.length,
        failed: parts.filter(({ record }) => FAILED_STATES.has(record.status)).length,
      };
    },
    poke({ entry, endedChildren = [] } = {}) {
      for (const id of endedChildren) state.endedChildren.add(id);
      if (entry && !seen.has(entry.n)) {
        seen.add(entry.n);
        journal.saw(entry.n);
        state.inbox = [...state.inbox, entry];
      }
      if (state.departure || parking) pokedLate = true;
      else advance();
    },
    pluginsChanged() {
      tryPlugins();
      advance();
    },
    async cancel() {
      if (state.departure || parking || isFinal(run.status) || run.status === 'cancelling') return false;
      cleanUp.begin('cancelled', 'caller');
      const durable = journal.flush();
      advance();
      return durable;
    },
    abandon() {
      if (!state.departure) quit('abandoned');
    },
    drain() {
      state.draining = true;
      for (const part of allJobs())
        for (const step of part.steps) if (step.slot === 'asked') steps.freeSlot(step);
      advance();
    },
  };
}
