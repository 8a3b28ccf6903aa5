import type { HandlerRef, WorkflowDefinition } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { StepRetry } from '../steps/retry-policy.ts';
import type { StepKind } from '../steps/step-kind.ts';
import type { FoundStep } from './found-step.ts';
import type { InputSchema } from './input-schema.ts';
import type { Condition, Template } from './templates.ts';

/**
 * Maximum number of steps in a run. All steps are in memory while the run is active, and each event that advances the
 * run visits all of them.
 */
export const MAX_STEPS = 10_000;

export interface CompiledStep {
  /** Id of the step, unique within its job. */
  id: string;
  index: number;
  name: string;
  uses: string;
  kind: StepKind;
  with: Template;
  /** The step's `with` as written, before expressions are evaluated. */
  rawWith: Record<string, JsonValue>;
  condition: Condition;
  retry: StepRetry | undefined;
  timeoutMs: number;
  continueOnError: boolean;
  idempotent: boolean | undefined;
  /** Overrides whether an interruption repeats the step. By default, `idempotent` and `idempotencyKey` decide. */
  afterInterruption?: 'repeat' | 'ask';
  idempotencyKey: Template | null;
  /** Whether a workflow in code requested the step as part of its clean-up. */
  cleansUp?: true | undefined;
}

export interface CompiledJob {
  id: string;
  needs: readonly string[];
  condition: Condition;
  matrix: Template | null;
  maxParallel: number;
  failFast: boolean;
  timeoutMs: number | null;
  continueOnError: boolean;
  outputs: Template;
  steps: readonly CompiledStep[];
}

/**
 * A workflow written as a function. Its only job has no listed steps, because the function requests steps while it
 * runs.
 */
export interface CompiledCode {
  pluginId: string;
  handler: HandlerRef;
  /** Compiles a step that the function requested. */
  stepOf(found: FoundStep, index: number): CompiledStep;
}

/** A webhook trigger of a workflow, compiled from `on.webhook`. */
export interface CompiledTrigger {
  pluginId: string;
  event: string;
  /** Plugin instance whose webhooks start the workflow; undefined for all instances. */
  instanceId: string | undefined;
  condition: Condition;
  input: Template;
}

export interface CompiledWorkflow {
  hash: string;
  /** Definition as JSON. Runs are pinned to the hash of this text. */
  body: string;
  definition: WorkflowDefinition;
  /** The function of a workflow in code; null for a definition with listed steps. */
  code: CompiledCode | null;
  triggers: readonly CompiledTrigger[];
  concurrencyKey: Template | null;
  outputs: Template | null;
  /** Jobs in dependency order. */
  jobs: readonly CompiledJob[];
  inputSchema: InputSchema | null;
  /** Schemas of signal payloads, by signal name. */
  signalSchemas: ReadonlyMap<string, InputSchema>;
}

/** Returns the step kind for a `uses` value, or undefined for an unknown value. */
export type KindOf = (uses: string) => StepKind | undefined;
