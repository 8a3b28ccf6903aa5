import type { HandlerRef, Role, WorkflowDefinition } from '../../../../contracts/index.ts';
import type { JsonValue } from '../../../../store/ports/index.ts';
import type { StepRetry } from '../steps/retry-policy.ts';
import type { StepKind } from '../steps/step-kind.ts';
import type { FoundStep } from './found-step.ts';
import type { InputSchema } from './input-schema.ts';
import type { SecretPlace } from './secret-places.ts';
import type { Condition, Template } from './templates.ts';

/** Maximum number of steps in a run. An active run keeps all steps in memory, and each event visits every step. */
export const MAX_STEPS = 10_000;

export interface CompiledStep {
  /** Id of the step, unique within its job. */
  id: string;
  index: number;
  name: string;
  uses: string;
  kind: StepKind;
  with: Template;
  /** Places in `with` whose values are secrets. The template has a placeholder there. */
  secrets?: readonly SecretPlace[];
  /** The step's `with` value as written, before expressions are evaluated. */
  rawWith: Record<string, JsonValue>;
  condition: Condition;
  retry: StepRetry | undefined;
  timeoutMs: number;
  continueOnError: boolean;
  idempotent: boolean | undefined;
  /**
   * Overrides the behavior after an interruption. By default, `idempotent` and `idempotencyKey` determine whether the
   * step is repeated.
   */
  afterInterruption?: 'repeat' | 'ask';
  idempotencyKey: Template | null;
  /** Whether the step is part of the clean-up of a workflow written in code. */
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

/** A workflow written as a function. Its only job lists no steps, because the function requests steps at run time. */
export interface CompiledCode {
  pluginId: string;
  handler: HandlerRef;
  /** Compiles a step that the workflow function requested. */
  stepOf(found: FoundStep, index: number): CompiledStep;
}

/** A webhook trigger of a workflow, compiled from `on.webhook`. */
export interface CompiledTrigger {
  pluginId: string;
  event: string;
  /** Plugin instance whose webhooks start the workflow. Undefined for all instances. */
  instanceId: string | undefined;
  condition: Condition;
  input: Template;
}

/** A handler of the end of a run, compiled from `on.failure` or `on.success`. It starts a workflow or sends a message. */
export type CompiledEndHandler = { on: 'failure' | 'success'; condition: Condition } & (
  | { workflowId: string; input: Template }
  | { type: string; data: Template; application: Template | null }
);

export interface CompiledWorkflow {
  hash: string;
  /** Definition as JSON. Runs are pinned to the hash of this text. */
  body: string;
  definition: WorkflowDefinition;
  /** Function of a workflow written in code. Null for a definition with listed steps. */
  code: CompiledCode | null;
  triggers: readonly CompiledTrigger[];
  endHandlers: readonly CompiledEndHandler[];
  concurrencyKey: Template | null;
  outputs: Template | null;
  /** Jobs in dependency order. */
  jobs: readonly CompiledJob[];
  inputSchema: InputSchema | null;
  /** Schemas of signal payloads, by signal name. */
  signalSchemas: ReadonlyMap<string, InputSchema>;
  /** Roles of which the sender of a signal needs one, by signal name. Other signals have no entry. */
  signalApprovers: ReadonlyMap<string, readonly Role[]>;
}

/** Returns the step kind for a `uses` value, or undefined for an unknown value. */
export type KindOf = (uses: string) => StepKind | undefined;
