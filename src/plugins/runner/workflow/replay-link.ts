import type {
  EnterStep,
  ReadySteps,
  RecalledSteps,
  ReplayContext,
  SettleStep,
  StepAnswer,
} from '../../../contracts/index.ts';
import type { StepInfo } from '../../../contracts/workflow-context.ts';

/** Calls from a replay to its workflow run. */
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

/** Request of a workflow function for a step. `run` is set if the step's work is a function in the workflow's code. */
export interface StepRequest {
  uses: string;
  with: Record<string, unknown>;
  options: object;
  /** Set if the step itself is passed to `ctx.all`, instead of a function. */
  joint?: true;
  /** Set if the retry option is inherited from the workflow's defaults. */
  inheritsRetry?: true;
  run?: ((step: StepInfo) => unknown) | undefined;
  /** Converts the stored output to the value that the function gets. */
  decode?: ((output: unknown) => Promise<unknown>) | undefined;
}
