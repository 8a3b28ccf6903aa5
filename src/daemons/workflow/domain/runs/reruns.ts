import type { PartStatus, WorkflowRun } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { JsonValue, RunRecord, RunStore, StartOptions } from '../../../../store/ports/index.ts';
import type { CompiledWorkflow } from '../definition/compiled-workflow.ts';
import type { Definitions } from '../definition/definitions.ts';
import { requireScriptRerun } from '../definition/scripts.ts';
import { partsOf, type RunParts, stepIdOf, stepsOf } from '../run/parts.ts';
import { viewRun } from '../run/views.ts';
import type { Starter } from '../starts/run-admission.ts';
import type { RunStarter } from '../starts/run-starter.ts';
import { isFinal } from '../states.ts';
import { ChildApprovals } from './child-approvals.ts';
import { requireRun } from './require-run.ts';
import { partsBefore } from './rerun-parts.ts';

export interface RerunRequest {
  /** Id of the first step to repeat. Without it, all steps run again. */
  fromStep?: string | undefined;
  /** Undefined for the input of the original run. */
  input?: JsonValue | undefined;
  /** A second rerun with the same key returns the run of the first one. */
  key?: string | undefined;
}

interface PreviewedStep {
  id: string;
  status: PartStatus;
}

export interface RerunPreview {
  reused: PreviewedStep[];
  repeated: PreviewedStep[];
  input: JsonValue;
  notes: string[];
}

/** A rerun whose conditions were checked. */
interface Prepared {
  run: RunRecord;
  workflow: CompiledWorkflow;
  groups: RunParts;
  parts: StartOptions['parts'];
  input: JsonValue;
}

export interface RerunsDeps {
  store: Pick<RunStore, 'find' | 'load' | 'attempts' | 'children'>;
  starter: Pick<RunStarter, 'start' | 'startOnce' | 'checkInput'>;
  definitions: Pick<Definitions, 'byHash' | 'registered'>;
}

/**
 * Runs ended runs again. All methods throw WORKFLOW_RUN_NOT_FOUND for an unknown run, CONFLICT for an unfinished one,
 * and VALIDATION_ERROR for a step or input that a rerun cannot have. @spec docs/workflows.md "Run again"
 */
export class Reruns {
  readonly #deps: RerunsDeps;
  readonly #childApprovals: ChildApprovals;

  constructor(deps: RerunsDeps) {
    this.#deps = deps;
    this.#childApprovals = new ChildApprovals(deps);
  }

  /** Starts a new run with the definition of the original one. The new run is durable once the promise resolves. */
  async rerun(
    tenantId: string,
    id: string,
    { key, ...request }: RerunRequest,
    who: Starter,
  ): Promise<WorkflowRun> {
    const { run, workflow, parts, input } = await this.#prepare(tenantId, id, request, who);
    const { kind, priority, handlerDepth } = run;
    const labels = run.labels === null ? undefined : JSON.parse(run.labels);
    const start = {
      kind,
      workflow,
      input,
      priority,
      labels,
      parts,
      handlerDepth,
      trigger: 'rerun',
      rerunOf: run.id,
    } as const;
    const idempotency = key === undefined ? undefined : { key, request: null };
    return viewRun(await this.#deps.starter.startOnce(idempotency, () => start, who));
  }

  /** Returns what `rerun` would do. Starts nothing. */
  async preview(tenantId: string, id: string, request: RerunRequest, who: Starter): Promise<RerunPreview> {
    const prepared = await this.#prepare(tenantId, id, request, who);
    const { workflow, groups, parts } = prepared;
    const input = await this.#deps.starter.checkInput({ workflow, input: prepared.input }, who);
    const kept = new Set(parts?.steps.map(({ jobKey, index }) => `${jobKey} ${index}`));
    const reused: PreviewedStep[] = [];
    const repeated: PreviewedStep[] = [];
    for (const part of stepsOf(groups)) {
      const { jobKey, index, status } = part.record;
      (kept.has(`${jobKey} ${index}`) ? reused : repeated).push({ id: stepIdOf(part), status });
    }
    for (const { job, parts: found } of groups.values())
      if (found === null)
        repeated.push(
          ...job.steps.map((step) => ({ id: `${job.id}.${step.id}`, status: 'pending' as const })),
        );
    return { reused, repeated, input, notes: this.#notes(prepared) };
  }

  async #prepare(
    tenantId: string,
    id: string,
    { fromStep, input }: RerunRequest,
    who: Starter,
  ): Promise<Prepared> {
    const { store, definitions } = this.#deps;
    const run = await requireRun(store, tenantId, id);
    if (!isFinal(run.status)) {
      const message = `Run ${id} is ${run.status}; it can be run again once it has ended.`;
      throw new PlatformError('CONFLICT', message);
    }
    const workflow = await definitions.byHash(run.definitionHash);
    requireScriptRerun({ id, workflow }, definitions.registered.get(run.workflowId)?.workflow, who);
    const loaded = await store.load(run.seq);
    // Retention deletes a run with all its results at once.
    if (!loaded) throw new PlatformError('WORKFLOW_RUN_NOT_FOUND', `The run ${id} was deleted by retention.`);
    const groups = partsOf(workflow, loaded);
    const from = fromStep === undefined ? undefined : { fromStep, hasOtherInput: input !== undefined };
    const parts = from && partsBefore(from, groups, run, workflow, await store.attempts(run.seq));
    if (parts && input !== undefined) await this.#childApprovals.refuse(run, groups, parts);
    return { run, workflow, groups, parts, input: input === undefined ? JSON.parse(run.input) : input };
  }

  #notes({ run, workflow, groups, parts }: Prepared): string[] {
    const notes: string[] = [];
    const registered = this.#deps.definitions.registered.get(run.workflowId);
    const isChanged = registered && registered.workflow.hash !== run.definitionHash;
    if (isChanged)
      notes.push(
        `The workflow "${run.workflowId}" has changed since. The new run has the earlier definition.`,
      );
    if (workflow.code)
      notes.push(
        'The function runs from its first line, with the code that is loaded now. Steps that it reaches after the reused ones can differ. If it does not reach the reused steps in their order, the new run fails with WORKFLOW_DEFINITION_CHANGED.',
      );
    const kept = new Set(parts?.jobs.map(({ jobId }) => jobId));
    const matrices = workflow.jobs.filter((job) => job.matrix && groups.get(job.id)?.parts);
    for (const { id } of parts ? matrices : [])
      if (kept.has(id)) notes.push(`The job "${id}" keeps the combinations of its matrix.`);
    return notes;
  }
}
