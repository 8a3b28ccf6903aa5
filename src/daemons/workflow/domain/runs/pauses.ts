import type { WorkflowRun } from '../../../../contracts/index.ts';
import type { PauseStore, RunRecord, RunStore, TenantWorkflow } from '../../../../store/ports/index.ts';
import type { Definitions } from '../definition/definitions.ts';
import type { EnginePauses } from '../engine/ports.ts';
import { viewRun } from '../run/views.ts';
import { requireRun } from './require-run.ts';

export interface PausesDeps {
  runs: Pick<RunStore, 'find'>;
  store: Pick<PauseStore, 'pausedWorkflows'>;
  pausing: EnginePauses;
  definitions: Pick<Definitions, 'require'>;
}

/** Pauses of runs and workflows for API callers. @spec docs/workflows.md "Pause and resume" */
export class Pauses {
  readonly #deps: PausesDeps;

  constructor(deps: PausesDeps) {
    this.#deps = deps;
  }

  /** Throws WORKFLOW_RUN_NOT_FOUND, or CONFLICT if the run has ended or is being cancelled. */
  pauseRun(tenantId: string, id: string): Promise<WorkflowRun> {
    return this.#change(tenantId, id, (run) => this.#deps.pausing.pause(run));
  }

  /** Throws WORKFLOW_RUN_NOT_FOUND. */
  resumeRun(tenantId: string, id: string): Promise<WorkflowRun> {
    return this.#change(tenantId, id, (run) => this.#deps.pausing.resume(run));
  }

  /** Throws WORKFLOW_NOT_FOUND. */
  async pauseWorkflow(workflow: TenantWorkflow): Promise<void> {
    const { pausing, definitions } = this.#deps;
    definitions.require(workflow.workflowId);
    await pausing.pauseWorkflow(workflow);
  }

  /** A workflow that is no longer registered can be resumed, too. */
  resumeWorkflow(workflow: TenantWorkflow): Promise<void> {
    return this.#deps.pausing.resumeWorkflow(workflow);
  }

  async pausedWorkflows(tenantId: string): Promise<ReadonlySet<string>> {
    return new Set(await this.#deps.store.pausedWorkflows(tenantId));
  }

  async #change(
    tenantId: string,
    id: string,
    change: (run: RunRecord) => Promise<RunRecord>,
  ): Promise<WorkflowRun> {
    return viewRun(await change(await requireRun(this.#deps.runs, tenantId, id)));
  }
}
