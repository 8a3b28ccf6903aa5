import {
  type CallVia,
  LIMITS,
  type PlatformConfig,
  type Role,
  type RunLabels,
  type RunTrigger,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { JsonValue, NewRun, RunRecord, RunStore, StartOptions } from '../../../../store/ports/index.ts';
import { checkedValue, tooLarge } from '../definition/checked-value.ts';
import { endTasksOf } from '../definition/compile-end-handlers.ts';
import type { CompiledCode, CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { expressionFault } from '../definition/definition-faults.ts';
import type { Evaluator } from '../definition/evaluator.ts';
import type { Scope } from '../definition/expressions.ts';
import { MAX_INPUT_CHARS } from '../definition/input-schema.ts';
import { hasScripts } from '../definition/scripts.ts';
import { digestOf, type Idempotency, isEarlierForm, keyTaken } from './idempotency.ts';
import { overLimit } from './over-limit.ts';

/** Identity and trace context of the caller that starts a run. */
export interface Starter {
  tenantId: string;
  hostId: string;
  requestId: string;
  traceId: string;
  /** Id of the delivery that starts the run or whose handler does. */
  deliveryId?: string | null | undefined;
  /** Role of the caller, and how it reached the gateway. Undefined for calls without a gateway, and for triggers. */
  role?: Role | null | undefined;
  isAdministrator?: boolean | undefined;
  via?: CallVia | undefined;
  /** Span id of the request that starts the run. */
  parentSpanId?: string | undefined;
}

export interface StartRequest {
  kind: 'workflow' | 'job';
  workflow: CompiledWorkflow;
  input: JsonValue;
  trigger: RunTrigger;
  priority?: number | undefined;
  runAt?: number | undefined;
  idempotency?: Idempotency | undefined;
  parent?: { id: string; stepId: string; depth: number } | undefined;
  rerunOf?: string | undefined;
  /** Key of the end task that starts the run. */
  handles?: string | undefined;
  /** Number of handlers in the chain that leads to the run. */
  handlerDepth?: number | undefined;
  labels?: RunLabels | undefined;
  parts?: StartOptions['parts'];
}

/** A stored run. A new run must still be queued by the engine. */
export interface Admitted {
  run: RunRecord;
  /** Whether this request started the run. False if the request repeats an earlier request. */
  isNew: boolean;
  /** Whether the store has no jobs, steps or inbox entries of the run. */
  fresh: boolean;
  /** Ids of the runs that this run supersedes under its concurrency key. */
  supersedes: readonly string[];
}

/**
 * Validates a run input or signal payload against the schema in the workflow's code. Throws VALIDATION_ERROR for an
 * invalid value.
 */
export type CheckCodeInput = (
  code: CompiledCode,
  value: JsonValue,
  options: { tenantId: string; signal?: string },
) => Promise<void>;

/** Maximum nesting depth of child runs. The limit stops a workflow that starts itself. */
const MAX_RUN_DEPTH = 16;

export interface RunAdmissionDeps {
  store: Pick<RunStore, 'start'>;
  clock: Clock;
  random: Random;
  tenants: PlatformConfig['tenants'];
  evaluator: Evaluator;
  checkCodeInput: CheckCodeInput;
  /** Throws SANDBOX_ERROR if this machine cannot confine scripts. */
  requireScripts(): Promise<void>;
}

/** Validates and stores new runs within the limits of their tenant. */
export class RunAdmission {
  readonly #deps: RunAdmissionDeps;

  constructor(deps: RunAdmissionDeps) {
    this.#deps = deps;
  }

  /**
   * Stores a run durably. Throws VALIDATION_ERROR, QUOTA_EXCEEDED or CONCURRENT_LIMIT_EXCEEDED. Throws CONFLICT if the
   * idempotency key belongs to another request.
   */
  async admit(request: StartRequest, starter: Starter): Promise<Admitted> {
    const { store, clock } = this.#deps;
    const { workflow, parent, idempotency } = request;
    if (parent && parent.depth + 1 > MAX_RUN_DEPTH)
      throw new PlatformError(
        'VALIDATION_ERROR',
        `Workflows start each other ${MAX_RUN_DEPTH} levels deep; this one would go deeper.`,
      );
    if (hasScripts(workflow)) await this.#deps.requireScripts();
    const { input, inputJson } = await this.checkInput(request, starter);
    const run = await this.#newRun(request, starter, input, inputJson);
    const started = await store.start(run, {
      definition: { hash: workflow.hash, workflowId: run.workflowId, body: workflow.body },
      day: new Date(run.createdAt).toISOString().slice(0, 10),
      limits: parent ? undefined : this.#limitsOf(run.tenantId),
      strategy: workflow.definition.concurrency?.strategy,
      parts: request.parts,
      idempotency: idempotency && {
        key: idempotency.key,
        digest: digestOf(idempotency),
        expiresAt: run.createdAt + LIMITS.idempotencyWindowMs,
      },
    });
    if (started.outcome === 'known') return known(started.run);
    if (started.outcome === 'different') {
      if (started.run && isEarlierForm(started, idempotency!, { hash: workflow.hash, checked: input }))
        return known(started.run);
      throw keyTaken(idempotency!);
    }
    if (started.outcome === 'over')
      throw overLimit(started.limit, run, this.#limitsOf(run.tenantId), clock.now());
    const { run: stored, supersedes } = started;
    return { run: stored, isNew: true, fresh: request.parts === undefined, supersedes };
  }

  /** Returns the input with its defaults. Throws VALIDATION_ERROR if the workflow does not accept it. */
  async checkInput(
    { workflow, input: given }: Pick<StartRequest, 'workflow' | 'input'>,
    { tenantId }: Pick<Starter, 'tenantId'>,
  ): Promise<{ input: JsonValue; inputJson: string }> {
    const { evaluator, checkCodeInput } = this.#deps;
    const part = { part: 'input', tenantId } as const;
    const input = await checkedValue(evaluator, workflow.inputSchema, given, part);
    const inputJson = JSON.stringify(input);
    if (inputJson.length > MAX_INPUT_CHARS) throw tooLarge('input');
    if (workflow.code) await checkCodeInput(workflow.code, input, { tenantId });
    return { input, inputJson };
  }

  #limitsOf(tenantId: string): NonNullable<StartOptions['limits']> | undefined {
    const { tenants } = this.#deps;
    const own = Object.hasOwn(tenants, tenantId) ? tenants[tenantId as keyof typeof tenants] : undefined;
    if (!own) return undefined;
    return {
      concurrent: own.concurrentRuns ?? null,
      perDay: own.runsPerDay ?? null,
      perMonth: own.runsPerMonth ?? null,
    };
  }

  async #concurrencyKeyOf(
    workflow: CompiledWorkflow,
    input: JsonValue,
    runId: string,
    starter: Starter,
  ): Promise<string | null> {
    const { evaluator } = this.#deps;
    if (!workflow.concurrencyKey) return null;
    const scope = keyScope(workflow, input, runId, starter);
    try {
      const key = await evaluator.evaluate(workflow.concurrencyKey, scope, starter.tenantId);
      return `${starter.tenantId}\n${typeof key === 'string' ? key : JSON.stringify(key)}`;
    } catch (error) {
      throw expressionFault(error, { path: 'concurrency.key' });
    }
  }

  async #newRun(
    request: StartRequest,
    starter: Starter,
    input: JsonValue,
    inputJson: string,
  ): Promise<NewRun> {
    const { clock, random } = this.#deps;
    const { kind, workflow, trigger, priority = 0, runAt, parent, rerunOf, labels } = request;
    const now = clock.now();
    const id = `${kind === 'job' ? 'job' : 'run'}_${random.uuid().replaceAll('-', '')}`;
    const { concurrency } = workflow.definition;
    return {
      id,
      kind,
      tenantId: starter.tenantId,
      workflowId: workflow.definition.id,
      definitionHash: workflow.hash,
      priority,
      runAt: runAt !== undefined && runAt > now ? runAt : null,
      deadlineAt: null,
      concurrencyKey: await this.#concurrencyKeyOf(workflow, input, id, starter),
      concurrencyLimit: concurrency?.limit ?? null,
      trigger,
      parentId: parent?.id ?? null,
      parentStep: parent?.stepId ?? null,
      rerunOf: rerunOf ?? null,
      depth: parent ? parent.depth + 1 : 0,
      hostId: starter.hostId,
      requestId: starter.requestId,
      traceId: starter.traceId,
      deliveryId: starter.deliveryId ?? null,
      parentSpanId: starter.parentSpanId ?? null,
      input: inputJson,
      labels: labels && Object.keys(labels).length > 0 ? JSON.stringify(labels) : null,
      endTasks: endTasksOf(workflow),
      handles: request.handles ?? null,
      handlerDepth: request.handlerDepth ?? 0,
      createdAt: now,
    };
  }
}

function known(run: RunRecord): Admitted {
  return { run, isNew: false, fresh: false, supersedes: [] };
}

function keyScope(workflow: CompiledWorkflow, input: JsonValue, runId: string, starter: Starter): Scope {
  return {
    input,
    run: { id: runId, workflowId: workflow.definition.id, tenantId: starter.tenantId },
    matrix: {},
    steps: {},
    needs: {},
    jobs: {},
    state: 'success',
  };
}
