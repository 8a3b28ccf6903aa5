import type {
  CountsQuery,
  countRuns,
  getRun,
  ReplyOf,
  Role,
  RunEvent,
  RunLogLine,
  RunStep,
  StepWait,
  WorkflowRun,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { InboxRecord, JsonValue, RunRecord, RunStore } from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import type { Definitions } from '../definition/definitions.ts';
import { requireScriptStarter } from '../definition/scripts.ts';
import { requireNoSecrets } from '../definition/secret-approvals.ts';
import type { CancelResult, Engine } from '../engine/ports.ts';
import { type Outline, partsOf, stepIdOf, stepsOf } from '../run/parts.ts';
import { viewChild, viewHandler, viewJobs, viewRun, viewSteps } from '../run/views.ts';
import { hashOf } from '../starts/idempotency.ts';
import type { Starter, StartRequest } from '../starts/run-admission.ts';
import type { RunStarter } from '../starts/run-starter.ts';
import { isFinal } from '../states.ts';
import type { ApprovalAnswer, CheckApproval } from './approval-check.ts';
import { type Page, type PageRequest, seqOf } from './pages.ts';
import { requireRun } from './require-run.ts';
import { countRunsByHour } from './run-hours.ts';
import {
  type ListFilter,
  type LogPage,
  type NewRunRequest,
  type SignalSender,
  storeFilter,
} from './run-requests.ts';
import { requireOutputSize, requireSignalForAgents, type SignalCheck } from './signal-check.ts';

const MAX_SHOWN_CHILDREN = 300;

export interface RunsDeps {
  store: RunStore;
  engine: Engine;
  starter: RunStarter;
  definitions: Definitions;
  clock: Clock;
  signalCheck: SignalCheck;
  checkApproval: CheckApproval;
}

/**
 * API operations on runs. All operations except `start` and `list` throw WORKFLOW_RUN_NOT_FOUND for an unknown run.
 * @spec REST API: workflows
 */
export class Runs {
  readonly #deps: RunsDeps;

  constructor(deps: RunsDeps) {
    this.#deps = deps;
  }

  /**
   * Starts a run. Throws WORKFLOW_NOT_FOUND, VALIDATION_ERROR, QUOTA_EXCEEDED or CONCURRENT_LIMIT_EXCEEDED. Throws
   * CONFLICT if the idempotency key belongs to another request.
   */
  async start(
    { workflowId, definition, idempotencyKey, ...request }: NewRunRequest,
    who: Starter,
  ): Promise<WorkflowRun> {
    const { starter, definitions } = this.#deps;
    const { input, priority, runAt = null, labels } = request;
    const idempotency = idempotencyKey && {
      key: idempotencyKey,
      request: { kind: 'workflow' as const, workflowId, definition, input, runAt, priority, labels },
    };
    const build = (): StartRequest => {
      const workflow =
        definition === undefined ? definitions.require(workflowId ?? '') : definitions.compile(definition);
      if (definition !== undefined) {
        requireNoSecrets(workflow);
        requireScriptStarter(workflow, who);
      }
      requireManual(workflow);
      return { ...request, kind: 'workflow', workflow, trigger: 'manual' };
    };
    return viewRun(await starter.startOnce(idempotency || undefined, build, who));
  }

  async get(tenantId: string, id: string): Promise<ReplyOf<typeof getRun>> {
    const { loaded, workflow } = await this.#loadToShow(tenantId, id);
    const mayHaveChildren = stepsOf(partsOf(workflow, loaded)).some(
      ({ step, record }) => step.uses === 'workflow' && record.attempts > 0,
    );
    const children = mayHaveChildren ? await this.#deps.store.children(id, MAX_SHOWN_CHILDREN) : [];
    return {
      ...viewRun(loaded.run),
      jobs: viewJobs(loaded, workflow),
      children: children.map(viewChild),
      handlers: loaded.run.endTasks === null ? [] : (await this.#deps.store.handlers(id)).map(viewHandler),
    };
  }

  async list(tenantId: string, { cursor, limit, ...filter }: ListFilter): Promise<Page<WorkflowRun>> {
    const { runs, next } = await this.#deps.store.list(tenantId, {
      ...storeFilter(filter),
      ...{ limit, before: seqOf(cursor) },
    });
    return { items: runs.map(viewRun), nextCursor: next === null ? null : String(next) };
  }

  /** Counts runs per hour of their creation. Throws VALIDATION_ERROR for an invalid range. */
  countByHour(tenantId: string, query: CountsQuery): Promise<ReplyOf<typeof countRuns>> {
    return countRunsByHour(this.#deps.store, tenantId, query, this.#deps.clock.now());
  }

  async steps(tenantId: string, id: string): Promise<RunStep[]> {
    const { loaded, workflow } = await this.#loadToShow(tenantId, id);
    return viewSteps(loaded, workflow, await this.#deps.store.attempts(loaded.run.seq));
  }

  async cancel(tenantId: string, id: string): Promise<CancelResult> {
    return this.#deps.engine.cancel(await this.#find(tenantId, id));
  }

  /**
   * Answers an approval step. Throws NOT_FOUND if the step does not wait for an approval. Throws CONFLICT if the
   * approval was already answered.
   */
  async approve(
    tenantId: string,
    id: string,
    stepId: string,
    answer: ApprovalAnswer,
    role?: Role | null,
  ): Promise<void> {
    const { run, wait } = await this.#waiting(tenantId, id, stepId, 'approval');
    const output = await this.#deps.checkApproval(wait, answer, { tenantId, role });
    await this.#deliver(run, 'approval', stepId, output);
  }

  async decide(
    tenantId: string,
    id: string,
    stepId: string,
    decision: Record<string, JsonValue>,
  ): Promise<void> {
    requireOutputSize('The output', decision.output ?? null);
    const { run } = await this.#waiting(tenantId, id, stepId, 'decision');
    await this.#deliver(run, 'decision', stepId, decision);
  }

  /**
   * Sends a signal to a run. Throws FORBIDDEN if the signal needs another role, and PAYLOAD_TOO_LARGE or
   * VALIDATION_ERROR for an invalid payload. Throws CONFLICT if the run has ended or the key was used for another signal.
   */
  async signal(
    tenantId: string,
    id: string,
    name: string,
    payload: JsonValue,
    { key, role, by, via }: SignalSender = {},
  ): Promise<void> {
    const { store, clock, signalCheck } = this.#deps;
    const run = await this.#find(tenantId, id);
    if (via === 'agent') requireSignalForAgents(await this.#load(tenantId, id), name);
    await signalCheck.requireSender(run, name, role);
    const repeat = key === undefined ? undefined : { key, digest: hashOf({ name, payload }) };
    const sent = { receivedAt: clock.now(), ...(by ? { by } : {}) };
    let checked: JsonValue;
    try {
      requireOutputSize('The signal', { payload, ...sent });
      checked = await signalCheck.validate(run, name, payload);
      requireOutputSize('The signal with its defaults', { payload: checked, ...sent });
    } catch (error) {
      if (!repeat || !(await store.wasDelivered(run.seq, repeat.key))) throw error;
      // The store ignores this repeat of a delivered signal. The check can fail because the schema has changed since
      // the first delivery.
      checked = payload;
    }
    // Another signal can end the wait of the step that allows agents, so later steps check the sender, too.
    const kind = via === 'agent' ? 'agent_signal' : 'signal';
    await this.#deliver(run, kind, name, checked, { repeat, sentBy: by });
  }

  async logs(
    tenantId: string,
    id: string,
    { cursor, limit, stepId, order }: LogPage,
  ): Promise<Page<RunLogLine>> {
    const { store } = this.#deps;
    const { seq } = await this.#find(tenantId, id);
    const place = seqOf(cursor);
    const found = await (order === 'desc'
      ? store.latestLogs(seq, place ?? Number.MAX_SAFE_INTEGER, limit)
      : store.logs(seq, place ?? 0, limit, undefined));
    const items = found
      .map(({ id: lineId, item }) => ({
        id: lineId,
        time: item.at,
        level: item.level,
        message: item.message,
        jobId: item.job ?? null,
        stepId: item.step === undefined ? null : `${item.job}.${item.step}`,
      }))
      .filter((line) => stepId === undefined || line.stepId === stepId);
    return { items, nextCursor: found.length < limit ? null : String(found.at(-1)!.id) };
  }

  async events(tenantId: string, id: string, { cursor, limit }: PageRequest): Promise<Page<RunEvent>> {
    const { seq } = await this.#find(tenantId, id);
    const found = await this.#deps.store.events(seq, seqOf(cursor) ?? 0, limit);
    const items = found.map(({ id: eventId, item }) => ({
      id: eventId,
      time: item.at,
      type: item.type,
      jobId: item.job ?? null,
      stepId: item.step === undefined ? null : `${item.job}.${item.step}`,
      data: (item.data ?? {}) as Record<string, JsonValue>,
    }));
    return { items, nextCursor: found.length < limit ? null : String(found.at(-1)!.id) };
  }

  /** Returns whether a run has ended. The event streams of a run end together with the run. */
  async isOver(tenantId: string, id: string): Promise<boolean> {
    return isFinal((await this.#find(tenantId, id)).status);
  }

  #find(tenantId: string, id: string): Promise<RunRecord> {
    return requireRun(this.#deps.store, tenantId, id);
  }

  async #loadWith<Of>(tenantId: string, id: string, definitionOf: (hash: string) => Promise<Of>) {
    const { seq, definitionHash } = await this.#find(tenantId, id);
    const [loaded, workflow] = await Promise.all([this.#deps.store.load(seq), definitionOf(definitionHash)]);
    return { loaded: loaded!, workflow };
  }

  #load(tenantId: string, id: string) {
    return this.#loadWith(tenantId, id, (hash) => this.#deps.definitions.byHash(hash));
  }

  /**
   * Loads a run for display. If the definition is lost, the run is shown without jobs. The lost definition might be the
   * reason why the run failed.
   */
  #loadToShow(tenantId: string, id: string) {
    return this.#loadWith(tenantId, id, async (hash): Promise<Outline> => {
      try {
        return await this.#deps.definitions.byHash(hash);
      } catch (error) {
        if (isLostDefinition(error)) return { jobs: [], code: null };
        throw error;
      }
    });
  }

  async #waiting(
    tenantId: string,
    id: string,
    stepId: string,
    what: 'approval' | 'decision',
  ): Promise<{ run: RunRecord; wait: StepWait }> {
    const { loaded, workflow } = await this.#load(tenantId, id);
    const step = stepsOf(partsOf(workflow, loaded)).find((part) => stepIdOf(part) === stepId);
    const isWaiting = step?.wait?.for === what && step.record.status === 'waiting';
    if (isWaiting) return { run: loaded.run, wait: step.wait! };
    const state = step ? `it is ${step.record.status}` : 'the run has no such step';
    throw new PlatformError(
      'NOT_FOUND',
      `The step "${stepId}" of run ${id} does not wait for ${what === 'approval' ? 'an approval' : 'a decision'}: ${state}.`,
      { details: { runId: id, stepId } },
    );
  }

  async #deliver(
    run: RunRecord,
    kind: InboxRecord['kind'],
    name: string,
    payload: JsonValue,
    {
      repeat,
      sentBy = null,
    }: { repeat?: { key: string; digest: string } | undefined; sentBy?: string | null | undefined } = {},
  ): Promise<void> {
    const { engine, clock } = this.#deps;
    const entry = { kind, name, payload: JSON.stringify(payload), at: clock.now(), sentBy };
    await engine.deliver(run, entry, { once: kind === 'approval' || kind === 'decision', repeat });
  }
}

function requireManual({ definition: { id, on } }: CompiledWorkflow): void {
  if (on.manual) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The workflow "${id}" has on.manual: false. Only its schedules and webhooks and the ends of other runs start it.`,
    { details: { workflowId: id } },
  );
}
