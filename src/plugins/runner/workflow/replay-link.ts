import type {
  EnterStep,
  ReadySteps,
  RecalledSteps,
  ReplayContext,
  SettleStep,
  StepAnswer,
} from '../../../contracts/index.ts';
import type { Emit } from '../../../contracts/plugin-services.ts';
import type { StepInfo } from '../../../contracts/workflow-context.ts';

/** Calls that a replay makes to its workflow run. */
export interface ReplayLink {
  replay: ReplayContext;
  signal: AbortSignal;
  /** Reports that the workflow function starts. */
  begin(): Promise<unknown>;
  recall(after: number): Promise<RecalledSteps>;
  enter(step: EnterStep): Promise<StepAnswer>;
  settle(step: SettleStep): Promise<StepAnswer>;
  watch(): Promise<ReadySteps>;
  /** Creates `ctx.emit`. `placeOf` returns the place of a call, which is the same in each replay. */
  emitter(placeOf: () => string): Emit;
}

/** A step that a workflow function requests. `run` is set if the step's work is a function in the workflow's code. */
export interface StepRequest {
  uses: string;
  with: Record<string, unknown>;
  options: object;
  /** Whether a step, instead of a function, was passed to `ctx.all`. */
  joint?: true;
  /** Whether the retry option is inherited from the workflow's defaults. */
  inheritsRetry?: true;
  run?: ((step: StepInfo) => unknown) | undefined;
  /** Converts the stored output to the value that the workflow function receives. */
  decode?: ((output: unknown) => Promise<unknown>) | undefined;
}
