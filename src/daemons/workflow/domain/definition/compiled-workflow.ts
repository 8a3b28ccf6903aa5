import type { HandlerRef, WorkflowDefinition } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { StepRetry } from '../steps/retry-policy.ts';
import type { StepKind } from '../steps/step-kind.ts';
import type { FoundStep } from './found-step.ts';
import type { InputSchema } from './input-schema.ts';
import type { Condition, Template } from './templates.ts';

/** Maximum steps of a run: all are in memory while it is active, and each advance visits all of them. */
export const MAX_STEPS = 10_000;

export interface CompiledStep {
  /** Unique within its job. */
  id: string;
  index: number;
  name: string;
  uses: string;
  kind: StepKind;
  with: Template;
  /** As written, before expressions are evaluated. */
  rawWith: Record<string, JsonValue>;
  condition: Condition;
  retry: StepRetry | undefined;
  timeoutMs: number;
  continueOnError: boolean;
  idempotent: boolean | undefined;
  /** Overrides the behavior that follows from `idempotent` and `idempotencyKey`. */
  afterInterruption?: 'repeat' | 'ask';
  idempotencyKey: Template | null;
  /** Whether a step of code continues while its run is ending. */
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

/** A workflow written as a function, whose one job discovers its steps while it runs. */
export interface CompiledCode {
  pluginId: string;
  handler: HandlerRef;
  /** Compiles a step that the function requested. */
  stepOf(found: FoundStep, index: number): CompiledStep;
}

/** A webhook trigger, as `on.webhook` describes it. */
export interface CompiledTrigger {
  pluginId: string;
  event: string;
  /** Undefined matches every instance. */
  instanceId: string | undefined;
  condition: Condition;
  input: Template;
}

/** A definition ready to run. */
export interface CompiledWorkflow {
  hash: string;
  /** JSON that the hash covers and runs are pinned to. */
  body: string;
  definition: WorkflowDefinition;
  /** The function of a workflow in code; null for a definition with listed steps. */
  code: CompiledCode | null;
  /** Webhook triggers that start the workflow. */
  triggers: readonly CompiledTrigger[];
  concurrencyKey: Template | null;
  outputs: Template | null;
  /** Jobs in dependency order. */
  jobs: readonly CompiledJob[];
  /** Schema of run inputs. */
  inputSchema: InputSchema | null;
  /** Schemas of signal payloads, by signal name. */
  signalSchemas: ReadonlyMap<string, InputSchema>;
}

/** Finds the kind of step for a `uses` value; undefined if none matches. */
export type KindOf = (uses: string) => StepKind | undefined;
