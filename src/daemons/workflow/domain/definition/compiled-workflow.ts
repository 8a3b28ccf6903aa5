import type { HandlerRef, WorkflowDefinition } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { StepRetry } from '../steps/retry-policy.ts';
import type { StepKind } from '../steps/step-kind.ts';
import type { FoundStep } from './compile-code.ts';
import type { InputSchema } from './input-schema.ts';
import type { Condition, Template } from './templates.ts';

export interface CompiledStep {
  /** Within its job. */
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
  /** What follows an interruption, where that does not depend on the two beside it. */
  afterInterruption?: 'repeat' | 'ask';
  idempotencyKey: Template | null;
  /** Of code: it goes on while its run is being ended. */
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

/** A workflow written as a function: its one job finds its steps as it runs. */
export interface CompiledCode {
  pluginId: string;
  handler: HandlerRef;
  /** A step that it came to. */
  stepOf(found: FoundStep, index: number): CompiledStep;
}

/** Deliveries of one webhook, as `on.webhook` describes them. */
export interface CompiledTrigger {
  pluginId: string;
  event: string;
  /** Undefined: every one. */
  instanceId: string | undefined;
  condition: Condition;
  input: Template;
}

/** A definition ready to run. */
export interface CompiledWorkflow {
  hash: string;
  /** The text that the hash is of, and that runs are pinned to: JSON. */
  body: string;
  definition: WorkflowDefinition;
  /** The function that tells its steps, where no definition lists them. */
  code: CompiledCode | null;
  /** Deliveries that start it. */
  triggers: readonly CompiledTrigger[];
  concurrencyKey: Template | null;
  outputs: Template | null;
  /** Every job after those it needs. */
  jobs: readonly CompiledJob[];
  /** What inputs are held against. */
  inputSchema: InputSchema | null;
  /** What payloads of signals are held against, by the signal's name. */
  signalSchemas: ReadonlyMap<string, InputSchema>;
}

/** Which kind runs what a step uses; undefined for what nothing runs. */
export type KindOf = (uses: string) => StepKind | undefined;
