import { HOUR_MS } from './hour-of.ts';
import type { RunFilter, RunRecord } from './ports/index.ts';

/** Maximum number of rows that a page reads. Keeps a search for a rare status from blocking the service. */
export const MAX_SCANNED_ROWS = 20_000;
/** Maximum number of bytes of inputs that a page compares with a search text. */
export const MAX_SEARCHED_BYTES = 32 * 1024 * 1024;

/** Statuses of ended runs whose runs are in a small index. */
const UNSUCCESSFUL: readonly string[] = ['failed', 'timed_out', 'cancelled'];

/**
 * Returns the name of the smallest set of runs that contains all runs with one of the statuses. The runs of `all` are in
 * the index of the list; those of each other set are in small indexes.
 */
export function statusSet(
  statuses: readonly string[] | undefined,
): 'all' | 'unsuccessful' | 'live' | 'notSucceeded' {
  if (statuses === undefined || statuses.includes('succeeded')) return 'all';
  if (statuses.every((status) => UNSUCCESSFUL.includes(status))) return 'unsuccessful';
  return statuses.some((status) => UNSUCCESSFUL.includes(status)) ? 'notSucceeded' : 'live';
}

/**
 * Texts that an input contains if it contains the search text: the text itself, as part of the JSON, and the text in
 * the form that it has inside a JSON string.
 */
export function searchedTexts(search: string): { search: string; escaped: string } {
  return { search, escaped: JSON.stringify(search).slice(1, -1) };
}

/** Returns the whole hours that a range of time touches, or undefined for a filter without a time. */
export function hoursTouched({ from, to, kind }: RunFilter): { from: number; to: number } | undefined {
  // Only workflow runs are counted per hour.
  if (kind !== 'workflow' || (from === undefined && to === undefined)) return undefined;
  return { from: (from ?? 0) - ((from ?? 0) % HOUR_MS), to: to ?? Number.MAX_SAFE_INTEGER };
}

type Compared = Pick<RunRecord, 'kind' | 'status' | 'workflowId' | 'createdAt' | 'labels'> & {
  reason: string | null;
  isPaused: 0 | 1;
};

const MAY_WAIT = new Set(['waiting', 'cancelling']);

/** Returns whether a run matches all fields of the filter except its text. */
export function matchesFilter(run: Compared, filter: RunFilter): boolean {
  const { kind, status, waitingReason, paused, workflowId, labels, from, to } = filter;
  return (
    (kind === undefined || run.kind === kind) &&
    (status === undefined || status.includes(run.status)) &&
    (waitingReason === undefined || (MAY_WAIT.has(run.status) && run.reason === waitingReason)) &&
    (paused === undefined || run.isPaused === 1) &&
    (workflowId === undefined || run.workflowId === workflowId) &&
    (from === undefined || run.createdAt >= from) &&
    (to === undefined || run.createdAt < to) &&
    (labels === undefined || hasLabels(run.labels, labels))
  );
}

function hasLabels(json: string | null, wanted: readonly string[]): boolean {
  const labels = Object.entries(JSON.parse(json ?? '{}') as Record<string, string>);
  const names = new Set(labels.map(([key, value]) => `${key}:${value}`));
  return wanted.every((label) => names.has(label));
}
