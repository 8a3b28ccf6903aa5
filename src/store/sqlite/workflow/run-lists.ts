import type { RunFilter } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { LIVE, STUCK } from './conditions.ts';
import type { RunRow } from './run-rows.ts';

/** Maximum number of rows that a page reads. Keeps a search for a rare status from blocking the service. */
const MAX_SCANNED_ROWS = 20_000;
const UNSUCCESSFUL = ['failed', 'timed_out', 'cancelled'];
const MAY_WAIT = new Set(['waiting', 'cancelling']);

type Listed = Pick<RunRow, 'seq' | 'kind' | 'status' | 'reason' | 'workflowId'>;
type ListState = { tenantId: string; before: number; workflowId?: string };

/** Numbers of the runs on a page, newest first, and the run number at which the next page starts. */
export interface RunPage {
  seqs: number[];
  next: number | null;
}

/** Returns the query for pages of runs. The query must run inside `db.read`. */
export function runLists(db: Database): (tenantId: string, filter: RunFilter) => RunPage {
  const sql = statements(db);

  function listed({ kind, status, waitingReason, workflowId }: RunFilter) {
    if (waitingReason === 'plugin') return sql.awaitsPlugin;
    if (waitingReason === 'decision') return sql.awaitsDecision;
    if (waitingReason !== undefined) return sql.live;
    if (status !== undefined && status !== 'succeeded')
      return UNSUCCESSFUL.includes(status) ? sql.unsuccessful : sql.live;
    if (workflowId !== undefined) return sql.ofWorkflow;
    return kind === 'job' ? sql.jobs : sql.all;
  }

  return (tenantId, filter) => {
    const { before, limit, workflowId } = filter;
    const state = {
      tenantId,
      before: before ?? Number.MAX_SAFE_INTEGER,
      ...(workflowId === undefined ? {} : { workflowId }),
    };
    const seqs: number[] = [];
    let scanned = 0;
    let last: number | null = null;
    for (const row of listed(filter).iterate(state)) {
      if (seqs.length === limit || scanned++ === MAX_SCANNED_ROWS) return { seqs, next: last };
      last = row.seq;
      if (matches(row, filter)) seqs.push(row.seq);
    }
    return { seqs, next: null };
  };
}

function matches(row: Listed, { kind, status, waitingReason, workflowId }: RunFilter): boolean {
  return (
    (kind === undefined || row.kind === kind) &&
    (status === undefined || row.status === status) &&
    (waitingReason === undefined || (MAY_WAIT.has(row.status) && row.reason === waitingReason)) &&
    (workflowId === undefined || row.workflowId === workflowId)
  );
}

function statements(db: Database) {
  const listed = (condition: string) =>
    db.prepare<[ListState], Listed>(`
      select seq, kind, status, reason, workflow_id as workflowId from run
      where tenant_id = :tenantId and seq < :before ${condition} order by seq desc`);
  return {
    all: listed(''),
    ofWorkflow: listed('and workflow_id = :workflowId'),
    jobs: listed(`and kind = 'job'`),
    live: listed(`and ${LIVE}`),
    awaitsPlugin: listed(`and ${STUCK} and reason = 'plugin'`),
    awaitsDecision: listed(`and ${STUCK} and reason = 'decision'`),
    unsuccessful: listed(`and status in ('failed', 'timed_out', 'cancelled')`),
  };
}
