import {
  cancelRun,
  type Endpoint,
  getJob,
  getRun,
  listRunLogs,
  listRunSteps,
  listRuns,
  postCancelRun,
  postCancelRunPrefixed,
  startRun,
  submitJob,
} from '../../../contracts/index.ts';
import { type Http, mountNotImplemented } from '../../../http/index.ts';

/** Where a run is: its start, its state, its steps, its end. @spec Workflow daemon; REST API: workflows, jobs */
export const RUN_ENDPOINTS: readonly Endpoint[] = [
  startRun,
  listRuns,
  getRun,
  cancelRun,
  listRunLogs,
  listRunSteps,
  postCancelRun,
  postCancelRunPrefixed,
];

/** @spec REST API: jobs */
export const JOB_ENDPOINTS: readonly Endpoint[] = [submitJob, getJob];

/** The daemon does not run workflows yet; it says so instead of taking work that it would lose. */
export function runRoutes(http: Http): void {
  for (const endpoint of [...RUN_ENDPOINTS, ...JOB_ENDPOINTS]) mountNotImplemented(http, endpoint);
}
