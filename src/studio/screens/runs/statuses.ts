/** Value of the filter for failed runs, as the chart of the overview counts them. */
export const FAILURES = 'failures';

/** Statuses of runs and jobs, as the filters offer them. */
export const RUN_STATUSES = [
  FAILURES,
  ...['queued', 'running', 'waiting', 'interrupted', 'cancelling'],
  ...['succeeded', 'failed', 'timed_out', 'cancelled'],
];

/** Returns the statuses that a value of the filter stands for. */
export function statusesOf(value: string | undefined): string[] | undefined {
  if (value === undefined) return undefined;
  return value === FAILURES ? ['failed', 'timed_out'] : [value];
}
