import type { Clock } from '../../../../kit/clock.ts';
import type { Deadlines } from '../../../../kit/deadlines.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { Random } from '../../../../kit/random.ts';
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
  /** It was ready before this boot. */
  isFromBefore: boolean;
  /** Those of these runs that have ended. */
  finishedRuns(ids: readonly string[]): Promise<RunRecord[]>;
  /** Ids of the children of a run that have not ended. */
  openChildren(runId: string): Promise<string[]>;
  /** Durable once it resolves; false where that failed. */
  cancelChild(runId: string): Promise<boolean>;
  /** How long the clean-up of a run that is being ended may take, unless its definition says. */
  cleanUpMs: number;
  /** How long a clean-up waits for a plugin at most. */
  maxPluginWaitMs: number;
  /** What runs the functions of workflows in code. */
  passes: PassDesk;
}

/** What came for a run: an entry of its inbox, or the ends of children. */
export interface RunNews {
  entry?: InboxRecord;
  endedChildren?: Iterable<string>;
}

/** A run in memory, driven until it ends or nothing of it is in the air. */
export interface ActiveRun {
  readonly run: RunRecord;
  readonly left: Promise<Departure>;
  /** Something came while it was being parked: it must be looked at again. */
  readonly wasPokedLate: boolean;
  /** Infinity while it waits for no time. */
  wakesInMs(): number;
  jobs(): { total: number; failed: number };
  /** Something came, or may have: look again. */
  poke(news?: RunNews): void;
  /** Plugins were read anew: tries again what waits for one. */
  pluginsChanged(): void;
  /** Durable once it resolves; false when it has ended, or was parked, meanwhile. */
  cancel(): Promise<boolean>;
  /** Lets go of it as it is: what is in the air is aborted, nothing more is written. */
  abandon(): void;
  /** Starts nothing more; once nothing is in the air it is parked, to be taken up by the next daemon. */
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
  /** Entries that were in the inbox once: one that was read with the run may be told of again after a step took it. */
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

  /** Ends or parks the run when nothing of it is in the air. */
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
    // Code that had no step left to be told by ends as it would have.
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

  /** Until the first of its waits ends: not always the one whose wall-clock time comes first. */
  const wakesInMs = (): number => Math.min(...wakes().map(deadlines.leftMs));

  /** Writes what happened, then starts the steps that are to begin: each depends on what came before it. */
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
        // A slot that is held by work in the air is given back when that has come back.
        if (step.abort === null || step.slot === 'asked') steps.freeSlot(step);
      }
    }
    recorder.settleCounts();
    gone.resolve(how);
  }

  /** What waits for a plugin is due. */
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
