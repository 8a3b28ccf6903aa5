import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Tracer } from '../../../../kit/telemetry/tracer.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { Replays } from '../code/replays.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { Effect } from '../run/effects.ts';
import type { RunEvent } from '../run/events.ts';
import type { Program } from '../run/program.ts';
import type { StepKey } from '../run/state.ts';
import { traceAttempt } from '../run/trace.ts';
import type { ChildRequest } from '../starts/child-runs.ts';
import { Attempts, SHUT_DOWN } from './attempts.ts';
import { Children } from './children.ts';
import { Evaluations } from './evaluations.ts';
import type { FairSlots } from './fair-slots.ts';
import { Inspections } from './inspections.ts';
import type { PluginWaits } from './plugin-waits.ts';
import { ReplayRunner } from './replay-runner.ts';
import { RunSlots } from './run-slots.ts';
import type { StepSecrets } from './step-secrets.ts';
import { Timers } from './timers.ts';

/** Dependencies of effects, shared by all runs. */
export interface EffectDeps {
  clock: Clock;
  random: Random;
  logger: Logger;
  tracer?: Tracer | undefined;
  slots: FairSlots;
  evaluator: Evaluator;
  pluginWaits: PluginWaits;
  replays: Replays;
  stepSecrets: StepSecrets;
  finishedRuns(ids: readonly string[]): Promise<RunRecord[]>;
  openChildren(runId: string): Promise<string[]>;
  cancelChild(runId: string): Promise<boolean>;
  /** Starts the child run of a step. Resolves with the id of the child run. */
  startChild(request: ChildRequest): Promise<string>;
}

export interface OfRun {
  run: RunRecord;
  program: Program;
  isFromBefore: boolean;
  dispatch(event: RunEvent): void;
}

/** Effect that removes the run from memory. `ActiveRun` performs this effect. */
type Leave = Extract<Effect, { type: 'leave' }>;

/** Performs the effects of a run. The result of each effect is dispatched as an event. */
export class EffectRunners {
  readonly slots: RunSlots;
  readonly #deps: EffectDeps & OfRun;
  readonly #inspections: Inspections;
  readonly #attempts: Attempts;
  readonly #evaluations: Evaluations;
  readonly #children: Children;
  readonly #timers: Timers;
  readonly #replay: ReplayRunner | null;

  constructor(deps: EffectDeps & OfRun) {
    this.#deps = deps;
    const { run, program, clock, dispatch } = deps;
    this.slots = new RunSlots(deps.slots, run.tenantId, (owner) => dispatch({ type: 'slot.granted', owner }));
    this.#timers = new Timers(clock, dispatch);
    const inspections = new Inspections(program, deps.pluginWaits);
    this.#inspections = inspections;
    const over = (owner: StepKey | 'replay'): void => this.slots.release(owner);
    this.#attempts = new Attempts({ ...deps, inspections, over });
    this.#evaluations = new Evaluations({ ...deps, inspections, tenantId: run.tenantId });
    this.#children = new Children({ ...deps, inspections, runId: run.id });
    const { code } = program.workflow;
    this.#replay = code && new ReplayRunner({ ...deps, code, inspections, over: () => over('replay') });
  }

  start(effect: Exclude<Effect, Leave>): void {
    switch (effect.type) {
      case 'attempt.start':
        void this.#attempts.start(effect);
        break;
      case 'attempt.abort':
        this.#attempts.abort(effect.step, effect.how);
        break;
      case 'attempt.release':
        this.#attempts.release(effect.step);
        break;
      case 'attempt.evaluate':
        void this.#evaluations.evaluateInput(effect);
        break;
      case 'evaluate':
        void this.#evaluations.evaluate(effect);
        break;
      case 'attempt.ended':
        traceAttempt(this.#deps.tracer, this.#deps.run, effect.ended);
        break;
      case 'slot.request':
        this.slots.request(effect.owner);
        break;
      case 'slot.release':
        this.slots.release(effect.owner);
        break;
      case 'slot.withdraw':
        this.slots.release(effect.step);
        this.#deps.dispatch({ type: 'slot.withdrawn', step: effect.step });
        break;
      case 'step.inspect':
        this.#deps.dispatch(this.#inspections.inspect(effect.step));
        break;
      case 'timer.set':
        this.#timers.set(effect.name, effect.ms, effect.event);
        break;
      case 'timer.clear':
        this.#timers.clear(effect.name);
        break;
      case 'plugin.awaited':
        this.#deps.pluginWaits.add(effect.pluginId, this.#deps.run.id, effect.why);
        break;
      case 'plugins.retried':
        this.#deps.pluginWaits.remove(this.#deps.run.id);
        break;
      default:
        this.#startForOthers(effect);
        break;
    }
  }

  /**
   * Stops timers and releases slots when the run leaves memory. In-flight work releases its slot when the work settles.
   */
  close(): void {
    this.#timers.close();
    this.slots.close((owner) =>
      owner === 'replay' ? this.#replay?.isInFlight === true : this.#attempts.has(owner),
    );
  }

  abortAll(): void {
    this.#attempts.abortAll();
    this.#replay?.abort(SHUT_DOWN);
  }

  #startForOthers(
    effect: Extract<Effect, { type: `child.${string}` | `children.${string}` | `replay.${string}` }>,
  ): void {
    switch (effect.type) {
      case 'child.find':
        this.#children.find(effect.step, effect.runId);
        break;
      case 'child.cancel':
        void this.#children.cancel(effect.runId, effect.step);
        break;
      case 'children.read':
        void this.#children.readOpen(effect.ended);
        break;
      case 'replay.start':
        void this.#replay!.start(effect.start);
        break;
      case 'replay.abort':
        this.#replay!.abort(effect.error);
        break;
      case 'replay.reply':
        this.#replay!.reply(effect.request, effect.reply);
        break;
      case 'replay.refuse':
        this.#replay!.refuse(effect.request, effect.error);
        break;
    }
  }
}
