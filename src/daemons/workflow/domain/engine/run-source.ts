import type { RunRecord } from '../../../../store/ports/index.ts';

/** Finds the runs to claim. */
export interface RunSource {
  /**
   * Reports a ready run that is no suspect. `fresh` means that the store holds only the run's own row, without jobs,
   * steps or inbox entries.
   */
  offer(run: RunRecord, fresh: boolean): void;
  /** Reports that the stored run has changed, so that an earlier copy is outdated. */
  stale(runId: string): void;
  /** Reports that stored runs of a workflow have changed. */
  staleWorkflow(workflow: Pick<RunRecord, 'tenantId' | 'workflowId'>): void;
  /** Reports that the store may hold ready runs that were not offered. */
  refresh(): Promise<void>;
  /** Claims due runs, then ready runs. Returns the time at which this function must be called again. */
  look(now: number): Promise<number | null>;
  /** Reports that a slot was released. */
  slotReleased(): void;
}
