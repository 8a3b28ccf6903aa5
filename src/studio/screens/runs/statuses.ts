/** Statuses of runs and jobs, as the filters offer them. */
export const RUN_STATUSES = [
  ...['queued', 'running', 'waiting', 'interrupted', 'cancelling'],
  ...['succeeded', 'failed', 'timed_out', 'cancelled'],
];
