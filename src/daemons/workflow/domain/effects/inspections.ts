import type { CompiledStep } from '../definition/compiled-workflow.ts';
import type { RunEvent, StepFacts } from '../run/events.ts';
import { type Failure, failureOf } from '../run/failure.ts';
import type { Program } from '../run/program.ts';
import type { StepKey } from '../run/state.ts';
import { PluginAway } from '../steps/plugin-away.ts';
import { toStepFailure } from '../steps/retry-policy.ts';
import type { PluginWaits } from './plugin-waits.ts';

/** Determines properties of steps that depend on the loaded plugins. */
export class Inspections {
  readonly #program: Program;
  readonly #pluginWaits: Pick<PluginWaits, 'pauseMs'>;

  constructor(program: Program, pluginWaits: Pick<PluginWaits, 'pauseMs'>) {
    this.#program = program;
    this.#pluginWaits = pluginWaits;
  }

  /** Returns an event with the data that determines whether an interrupted step can run again. */
  inspect(step: StepKey): RunEvent {
    const compiled = this.#program.stepAt(step);
    const away = compiled.kind.away?.(compiled.uses);
    return {
      type: 'step.inspected',
      step,
      facts: this.factsOf(step),
      away: away ? this.failureOf(away, compiled) : null,
    };
  }

  factsOf(step: StepKey): StepFacts {
    const { kind, uses, rawWith } = this.#program.stepAt(step);
    return { isIdempotent: kind.isIdempotent(uses, rawWith) };
  }

  failureOf(thrown: unknown, step?: CompiledStep): Failure {
    const failure = toStepFailure(thrown);
    if (!(failure instanceof PluginAway)) return failureOf(failure);
    const { pluginId } = failure;
    const isMissing = step?.kind.away?.(step.uses) !== undefined;
    const pauseMs = this.#pluginWaits.pauseMs(pluginId);
    return { ...failureOf(failure), away: { pluginId, pauseMs, isMissing } };
  }
}
