import type {
  EnterStep,
  ReadySteps,
  RecalledSteps,
  ReplayContext,
  SettleStep,
  StepAnswer,
} from '../../../contracts/index.ts';
import type { StepInfo } from '../../../contracts/workflow-context.ts';

/** Calls to the run of the function, over the platform channel. */
export interface ReplayLink {
  replay: ReplayContext;
  signal: AbortSignal;
  /** Reports that the function begins. */
  begin(): Promise<unknown>;
  recall(after: number): Promise<RecalledSteps>;
  enter(step: EnterStep): Promise<StepAnswer>;
  settle(step: SettleStep): Promise<StepAnswer>;
  watch(): Promise<ReadySteps>;
}

/** A step as the function requests it. `run` is set for steps whose work is a part of the function. */
export interface StepRequest {
  uses: string;
  with: Record<string, unknown>;
  options: object;
  /** Set if the step itself is an item of `ctx.all`. */
  joint?: true;
  /** Set if the retry option is inherited from the workflow's defaults. */
  inheritsRetry?: true;
  run?: ((step: StepInfo) => unknown) | undefined;
  /** Converts the stored output to the value that the function gets. */
  decode?: ((output: unknown) => Promise<unknown>) | undefined;
}
