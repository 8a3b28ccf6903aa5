import type { RunFilter, RunHead, RunRecord } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';
import { SELECT_RUN } from './run-rows.ts';
import { LIVE, STUCK } from './schema.ts';

/**
 * Maximum number of rows that are scanned for a list page. Keeps searches for a rare status among a million runs fast.
 */
const MAX_SCANNED_ROWS = 20_000;
const UNSUCCESSFUL = ['failed', 'timed_out', 'cancelled'];

/**
 * Returns a page of runs, newest first. A page can be short although more runs match. The next page starts at `next`.
 */
export async function listRuns(
  sql: Sql,
  tenantId: string,
  filter: RunFilter,
): Promise<{ runs: RunRecord[]; next: number | null }> {
  const { page, next } = await listSeqs(sql, tenantId, filter);
  const runs = await sql<RunRecord>(`${SELECT_RUN} where seq = any(:page) order by seq desc`, { page });
  return { runs, next };
}

/** Returns the same page as `listRuns`, without inputs and outputs. */
export async function listHeads(
  sql: Sql,
  tenantId: string,
  filter: RunFilter,
): Promise<{ runs: RunHead[]; next: number | null }> {
  const { page, next } = await listSeqs(sql, tenantId, filter);
  const runs = await sql<RunHead>(
    `select seq, id, status, workflow_id as "workflowId", parent_id as "parentId", created_at as "createdAt",
       finished_at as "finishedAt" from svc.run where seq = any(:page) order by seq desc`,
    { page },
  );
  return { runs, next };
}

async function listSeqs(
  sql: Sql,
  tenantId: string,
  filter: RunFilter,
): Promise<{ page: number[]; next: number | null }> {
  const { kind, status, waitingReason, workflowId, limit } = filter;
  // The inner query reads a bounded part of one index. The outer query filters the rows and reports where the scan
  // ended.
  const rows = await sql<{ seq: number; matches: boolean; isLast: boolean }>(
    `with scanned as materialized (
       select seq, kind, status, reason, workflow_id from svc.run
       where tenant_id = :tenantId and seq < :before and ${candidates(filter)} order by seq desc limit :rows
     ), judged as (
       select seq, (:kind::text is null or kind = :kind) and (:status::text is null or status = :status)
         and (:waitingReason::text is null or status in ('waiting', 'cancelling') and reason = :waitingReason)
         and (:workflowId::text is null or workflow_id = :workflowId) as matches,
         row_number() over (order by seq desc) = count(*) over () as "isLast"
       from scanned
     )
     select seq, matches, "isLast" from judged where matches or "isLast" order by seq desc limit :wanted`,
    {
      ...{
        tenantId,
        before: filter.before ?? Number.MAX_SAFE_INTEGER,
        rows: MAX_SCANNED_ROWS,
        wanted: limit + 1,
      },
      ...{ kind: kind ?? null, status: status ?? null, waitingReason: waitingReason ?? null },
      workflowId: workflowId ?? null,
    },
  );
  const seqs = rows.filter(({ matches }) => matches).map(({ seq }) => seq);
  const page = seqs.slice(0, limit);
  if (seqs.length > limit) return { page, next: page.at(-1) ?? null };
  return { page, next: await nextAfter(sql, tenantId, filter, rows.at(-1)?.seq) };
}

/** Returns the position where the next page starts, or null if no further run can match. */
async function nextAfter(
  sql: Sql,
  tenantId: string,
  filter: RunFilter,
  last: number | undefined,
): Promise<number | null> {
  if (last === undefined) return null;
  const more = await sql(
    `select from svc.run where tenant_id = :tenantId and seq < :last and ${candidates(filter)} limit 1`,
    { tenantId, last },
  );
  return more.length > 0 ? last : null;
}

/** Returns the condition of the smallest index that contains all runs that match the filter. */
function candidates({ status, waitingReason }: RunFilter): string {
  if (waitingReason === 'plugin' || waitingReason === 'decision')
    return `${STUCK} and reason = '${waitingReason}'`;
  if (waitingReason !== undefined) return LIVE;
  if (status === undefined || status === 'succeeded') return 'true';
  return UNSUCCESSFUL.includes(status) ? `status in ('failed', 'timed_out', 'cancelled')` : LIVE;
}
