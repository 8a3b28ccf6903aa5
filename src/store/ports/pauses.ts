/**
 * Pauses of runs and workflows. Paused runs are not claimed, except to clean up, and acquire no concurrency key. A run
 * that holds its key when it is paused keeps the key. Resumed runs acquire their key if it is free, and otherwise wait
 * for it. @spec docs/decisions/0282
 */
export interface PauseStore {
  /** Returns the fence of the owner, or undefined if the run has ended or cleans up. */
  pauseRun(seq: number, at: number): Promise<{ owner: number | null } | undefined>;
  /** Ends the pause of a run. Returns the fence of its owner, or undefined if the run was not paused. */
  resumeRun(seq: number, at: number): Promise<{ owner: number | null } | undefined>;
  /** Pauses the runs of a workflow in a tenant that have not begun, and those that are started from now on. */
  pauseWorkflow(workflow: TenantWorkflow): Promise<void>;
  /** Ends the pause of a workflow and of the runs that it paused. */
  resumeWorkflow(workflow: TenantWorkflow): Promise<void>;
  pausedWorkflows(tenantId: string): Promise<string[]>;
}

/** A workflow in a tenant. */
export interface TenantWorkflow {
  tenantId: string;
  workflowId: string;
}
