import type {
  RunEvent,
  RunJob,
  RunLogLine,
  RunStatus,
  RunStep,
  WaitReason,
  WorkflowRun,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { JsonValue, RunRecord, RunStore } from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import { isLostDefinition } from '../definition/definition-faults.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { CancelResult, Engine } from '../engine/engine-ports.ts';
import { type Outline, partsOf, stepIdOf } from '../run/run-parts.ts';
import { hashOf } from '../starts/idempotency.ts';
import type { RunStarter, Starter, StartRequest } from '../starts/run-starter.ts';
import { isFinal } from '../states.ts';
import { partsBefore } from './rerun-parts.ts';
import { type CheckSignal, requireHandOn } from './signal-check.ts';
import { viewJobs, viewRun, viewSteps } from './views.ts';

/** Operations of the API on runs. @spec Workflow daemon; REST API: workflows */
export interface RunDesk {
  /** Throws WORKFLOW_NOT_FOUND, VALIDATION_ERROR, CONFLICT, QUOTA_EXCEEDED, CONCURRENT_LIMIT_EXCEEDED. */
  start(request: NewRunRequest, starter: Starter): Promise<WorkflowRun>;
  /** All methods below throw WORKFLOW_RUN_NOT_FOUND. */
  get(tenantId: string, id: string): Promise<WorkflowRun & { jobs: RunJob[] }>;
  list(tenantId: string, filter: ListFilter): Promise<{ items: WorkflowRun[]; nextCursor: string | null }>;
  steps(tenantId: string, id: string): Promise<RunStep[]>;
  cancel(tenantId: string, id: string): Promise<CancelResult>;
  rerun(tenantId: string, id: string, fromStep: string | undefined, starter: Starter): Promise<WorkflowRun>;
  /** Throws NOT_FOUND for a step that does not wait for an approval, CONFLICT for a decided one. */
  approve(tenantId: string, id: string, stepId: string, decision: Record<string, JsonValue>): Promise<void>;
  decide(tenantId: string, id: string, stepId: string, decision: Record<string, JsonValue>): Promise<void>;
  /** Throws PAYLOAD_TOO_LARGE, VALIDATION_ERROR; CONFLICT if the key was used for another signal. */
  signal(tenantId: string, id: string, name: string, payload: JsonValue, key?: string): Promise<void>;
  logs(
    tenantId: string,
    id: string,
    page: PageRequest & { stepId?: string | undefined },
  ): Promise<Page<RunLogLine>>;
  events(tenantId: string, id: string, page: PageRequest): Promise<Page<RunEvent>>;
  /** Whether a run has ended, and with it its event streams. */
  isOver(tenantId: string, id: string): Promise<boolean>;
}

export interface NewRunRequest {
  workflowId?: string | undefined;
  definition?: unknown;
  input: JsonValue;
  idempotencyKey?: string | undefined;
  priority: number;
  runAt?: number | undefined;
}

export interface ListFilter extends PageRequest {
  status?: RunStatus | undefined;
  waitingReason?: WaitReason | undefined;
  workflowId?: string | undefined;
}
export interface PageRequest {
  cursor?: string | undefined;
  limit: number;
}
export interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

export interface RunDeskDeps {
  store: RunStore;
  engine: Engine;
  starter: RunStarter;
  definitions: Definitions;
  clock: Clock;
  checkSignal: CheckSignal;
}

export function createRunDesk(deps: RunDeskDeps): RunDesk {
  const { store, engine, starter, definitions, clock, checkSignal } = deps;

  async function find(tenantId: string, id: string): Promise<RunRecord> {
    const run = await store.find(tenantId, id);
    // Jobs are included: an interrupted job can be inspected and decided like any run.
    if (run) return run;
    throw new PlatformError('WORKFLOW_RUN_NOT_FOUND', `There is no run "${id}".`, { details: { runId: id } });
  }

  async function loadOver<Of>(tenantId: string, id: string, definitionOf: (hash: string) => Promise<Of>) {
    const { seq, definitionHash } = await find(tenantId, id);
    const [loaded, workflow] = await Promise.all([store.load(seq), definitionOf(definitionHash)]);
    return { loaded: loaded!, workflow };
  }

  const load = (tenantId: string, id: string) => loadOver(tenantId, id, definitions.byHash);

  /** Loads a run for display; without jobs if its definition is lost, which may be why the run failed. */
  const loadToShow = (tenantId: string, id: string) =>
    loadOver(tenantId, id, async (hash): Promise<Outline> => {
      try {
        return await definitions.byHash(hash);
      } catch (error) {
        if (isLostDefinition(error)) return { jobs: [], code: null };
        throw error;
      }
    });

  async function waitingStep(tenantId: string, id: string, stepId: string, what: 'approval' | 'decision') {
    const { loaded, workflow } = await load(tenantId, id);
    const step = [...partsOf(workflow, loaded).values()]
      .flatMap(({ parts }) => parts ?? [])
      .flatMap(({ steps }) => steps)
      .find((part) => stepIdOf(part) === stepId);
    if (step?.wait?.for === what && step.record.status === 'waiting') return loaded.run;
    const state = step ? `it is ${step.record.status}` : 'the run has no such step';
    throw new PlatformError(
      'NOT_FOUND',
      `The step "${stepId}" of run ${id} does not wait for ${what === 'approval' ? 'an approval' : 'a decision'}: ${state}.`,
      {
        details: { runId: id, stepId },
      },
    );
  }

  async function deliver(
    run: RunRecord,
    kind: 'approval' | 'decision' | 'signal',
    name: string,
    payload: JsonValue,
    repeat?: { key: string; digest: string },
  ) {
    const entry = { kind, name, payload: JSON.stringify(payload), at: clock.now() };
    await engine.deliver(run, entry, { once: kind !== 'signal', repeat });
  }

  return {
    async start({ workflowId, definition, idempotencyKey, ...request }, who) {
      const { input, priority, runAt = null } = request;
      const idempotency = idempotencyKey && {
        key: idempotencyKey,
        asked: { kind: 'workflow' as const, workflowId, definition, input, runAt, priority },
      };
      const asked = (): StartRequest => {
        const workflow =
          definition === undefined ? definitions.require(workflowId ?? '') : definitions.compile(definition);
        requireManual(workflow);
        return { ...request, kind: 'workflow', workflow, trigger: 'manual' };
      };
      return viewRun(await starter.startOnce(idempotency || undefined, asked, who));
    },
    async get(tenantId, id) {
      const { loaded, workflow } = await loadToShow(tenantId, id);
      return { ...viewRun(loaded.run), jobs: viewJobs(loaded, workflow) };
    },
    async list(tenantId, { cursor, ...filter }) {
      const { runs, next } = await store.list(tenantId, {
        ...filter,
        kind: 'workflow',
        before: seqOf(cursor),
      });
      return { items: runs.map(viewRun), nextCursor: next === null ? null : String(next) };
    },
    async steps(tenantId, id) {
      const { loaded, workflow } = await loadToShow(tenantId, id);
      return viewSteps(loaded, workflow, await store.attempts(loaded.run.seq));
    },
    async cancel(tenantId, id) {
      return engine.cancel(await find(tenantId, id));
    },
    async rerun(tenantId, id, fromStep, who) {
      const { loaded, workflow } = await load(tenantId, id);
      const { run } = loaded;
      if (!isFinal(run.status))
        throw new PlatformError(
          'CONFLICT',
          `Run ${id} is ${run.status}; it can be run again once it has ended.`,
        );
      const parts =
        fromStep === undefined
          ? undefined
          : partsBefore(fromStep, loaded, workflow, await store.attempts(run.seq));
      const request: StartRequest = {
        kind: run.kind,
        workflow,
        input: JSON.parse(run.input),
        trigger: 'rerun',
        priority: run.priority,
        rerunOf: run.id,
        parts,
      };
      return viewRun(await starter.start(request, who));
    },
    async approve(tenantId, id, stepId, decision) {
      await deliver(await waitingStep(tenantId, id, stepId, 'approval'), 'approval', stepId, decision);
    },
    async decide(tenantId, id, stepId, decision) {
      requireHandOn('The output', decision.output ?? null);
      await deliver(await waitingStep(tenantId, id, stepId, 'decision'), 'decision', stepId, decision);
    },
    async signal(tenantId, id, name, payload, key) {
      const run = await find(tenantId, id);
      const repeat = key === undefined ? undefined : { key, digest: hashOf({ name, payload }) };
      let checked: JsonValue;
      try {
        requireHandOn('The signal', { payload, receivedAt: clock.now() });
        checked = await checkSignal(run, name, payload);
        requireHandOn('The signal with its defaults', { payload: checked, receivedAt: clock.now() });
      } catch (error) {
        if (!repeat || !(await store.wasDelivered(run.seq, repeat.key))) throw error;
        // The schema may have changed since the first delivery. The store ignores a repeat with the same key.
        checked = payload;
      }
      await deliver(run, 'signal', name, checked, repeat);
    },
    async logs(tenantId, id, { cursor, limit, stepId }) {
      const { seq } = await find(tenantId, id);
      const found = await store.logs(seq, seqOf(cursor) ?? 0, limit, undefined);
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
    },
    async events(tenantId, id, { cursor, limit }) {
      const { seq } = await find(tenantId, id);
      const found = await store.events(seq, seqOf(cursor) ?? 0, limit);
      const items = found.map(({ id: eventId, item }) => ({
        id: eventId,
        time: item.at,
        type: item.type,
        jobId: item.job ?? null,
        stepId: item.step === undefined ? null : `${item.job}.${item.step}`,
        data: (item.data ?? {}) as Record<string, JsonValue>,
      }));
      return { items, nextCursor: found.length < limit ? null : String(found.at(-1)!.id) };
    },
    isOver: async (tenantId, id) => isFinal((await find(tenantId, id)).status),
  };
}

function requireManual({ definition: { id, on } }: CompiledWorkflow): void {
  if (on.manual) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The workflow "${id}" says on.manual: false: its schedules and webhooks alone start it.`,
    { details: { workflowId: id } },
  );
}

/** Parses a cursor. Throws VALIDATION_ERROR for an invalid one. */
export function seqOf(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const number = Number(cursor);
  if (/^\d+$/.test(cursor) && Number.isSafeInteger(number)) return number;
  throw new PlatformError('VALIDATION_ERROR', 'query.cursor: take it from "nextCursor" of the page before.');
}
