/**
 * Adds indexes for lists of one workflow and for lists of jobs. Without them, a list of something rare reads all runs
 * of the tenant. Neither index changes when a run makes progress.
 */
export const LIST_INDEXES = `
  create index run_workflow on run (tenant_id, workflow_id, seq);
  create index run_job on run (tenant_id, seq) where kind = 'job';`;
