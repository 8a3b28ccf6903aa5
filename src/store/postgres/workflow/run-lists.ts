import { PAUSED } from '../../pause-conditions.ts';
import type { RunFilter, RunHead, RunRecord } from '../../ports/index.ts';
import {
  hoursTouched,
  MAX_SCANNED_ROWS,
  MAX_SEARCHED_BYTES,
  searchedTexts,
  statusSet,
} from '../../run-search.ts';
import type { Sql } from '../named-sql.ts';
import { storable } from '../storable.ts';
import { runNumbersOf } from './run-hours.ts';
import { SELECT_RUN } from './run-rows.ts';
import { LIVE, STUCK } from './schema.ts';

const UNSUCCESSFUL = `status in ('failed', 'timed_out', 'cancelled')`;

/** Run numbers that a page can contain, from `before` (exclusive) down to `first`. */
interface Range {
  first: number;
  before: number;
}

type RunPage<Run> = { runs: Run[]; next: number | null };

/**
 * Returns a page of runs, newest first. A page can be short although more runs match. The next page starts at `next`.
 */
export async function listRuns(sql: Sql, tenantId: string, filter: RunFilter): Promise<RunPage<RunRecord>> {
  const { page, next } = await scanPage(sql, tenantId, filter);
  const runs = await sql<RunRecord>(`${SELECT_RUN} where seq = any(:page) order by seq desc`, { page });
  return { runs, next };
}

/** Returns the same page as `listRuns`, without inputs and outputs. */
export async function listHeads(sql: Sql, tenantId: string, filter: RunFilter): Promise<RunPage<RunHead>> {
  const { page, next } = await scanPage(sql, tenantId, filter);
  const runs = await sql<RunHead>(
    `select seq, id, status, workflow_id as "workflowId", parent_id as "parentId", created_at as "createdAt",
       finished_at as "finishedAt" from svc.run where seq = any(:page) order by seq desc`,
    { page },
  );
  return { runs, next };
}

/** Returns the run numbers of a page, and where the next page starts. */
async function scanPage(
  sql: Sql,
  tenantId: string,
  filter: RunFilter,
): Promise<{ page: number[]; next: number | null }> {
  const range = await rangeOf(sql, tenantId, filter);
  if (!range) return { page: [], next: null };
  const { limit } = filter;
  const given = { ...valuesOf(tenantId, filter), ...range };
  const rows = await sql<{ seq: number; matches: boolean }>(scanOf(filter), {
    ...given,
    ...{ rows: MAX_SCANNED_ROWS, bytes: MAX_SEARCHED_BYTES, wanted: limit + 1 },
  });
  const seqs = rows.filter(({ matches }) => matches).map(({ seq }) => seq);
  const page = seqs.slice(0, limit);
  if (seqs.length > limit) return { page, next: page.at(-1) ?? null };
  const last = rows.at(-1)?.seq;
  if (last === undefined) return { page, next: null };
  const more = await sql(`select ${candidates(filter)} limit 1`, { ...given, before: last });
  return { page, next: more.length > 0 ? last : null };
}

/** Returns the range of run numbers that can match, or undefined if there is no such run. */
async function rangeOf(sql: Sql, tenantId: string, filter: RunFilter): Promise<Range | undefined> {
  const before = filter.before ?? Number.MAX_SAFE_INTEGER;
  if (filter.search !== undefined) {
    const id = storable(filter.search);
    const [run] = await sql<{ seq: number }>(
      'select seq from svc.run where id = :id and tenant_id = :tenantId',
      { id, tenantId },
    );
    if (run) return { first: run.seq, before: Math.min(before, run.seq + 1) };
  }
  const hours = hoursTouched(filter);
  if (!hours) return { first: 0, before };
  const { first, last } = await runNumbersOf(sql, tenantId, hours);
  return first === null || last === null ? undefined : { first, before: Math.min(before, last + 1) };
}

/**
 * Returns the statement that scans a page. The inner query reads a bounded part of one index. The outer queries filter
 * the rows, and report where the scan ended. A search compares the inputs in the order of the page, until the page is
 * full or the inputs exceed `:bytes`.
 */
function scanOf(filter: RunFilter): string {
  const isSearch = filter.search !== undefined;
  return `
    with scanned as materialized (
      select run.seq, kind, status, reason, ${PAUSED} as "isPaused", workflow_id, created_at, octet_length(input) as bytes ${candidates(filter)}
      order by run.seq desc limit :rows
    ), fitting as (
      select seq, bytes, (:kind::text is null or kind = :kind) and (:status::text[] is null or status = any(:status))
        and (:waitingReason::text is null or status in ('waiting', 'cancelling') and reason = :waitingReason)
        and (:paused::boolean is null or "isPaused")
        and (:workflowId::text is null or workflow_id = :workflowId)
        and (:from::bigint is null or created_at >= :from) and (:to::bigint is null or created_at < :to)
        and ${otherLabels(filter)} as fits
      from scanned
    ), summed as (
      select seq, fits, sum(cost) over (order by seq desc) - cost as before
      from (select seq, fits, case when fits then bytes else 0 end as cost from fitting) as costs
    ), judged as (
      select seq, fits, row_number() over (order by seq desc) = count(*) over () as "isLast"
      from summed ${isSearch ? 'where before < :bytes' : 'where :bytes::bigint is not null'}
    )
    select seq, fits and ${isSearch ? HAS_TEXT : 'true'} as matches from judged
    where fits and ${isSearch ? HAS_TEXT : 'true'} or "isLast" order by seq desc limit :wanted`;
}

const HAS_TEXT = `(
  select id = :search or strpos(input, :search) > 0 or strpos(input, :escaped) > 0 from svc.run where run.seq = judged.seq)`;

/** The index of labels finds the runs with the first label. The others are looked up for each run. */
function otherLabels({ labels = [] }: RunFilter): string {
  if (labels.length < 2) return 'true';
  return `not exists (
    select from unnest(:labels::text[]) as wanted where not exists (
      select from svc.run_label l where l.tenant_id = :tenantId and l.label = wanted and l.run_seq = scanned.seq))`;
}

/** Returns the tables and the condition of the smallest index that contains all runs that match the filter. */
function candidates({ labels = [], status, waitingReason, paused }: RunFilter): string {
  const ofRuns = (condition: string): string =>
    `from svc.run where tenant_id = :tenantId and seq < :before and seq >= :first and ${condition}`;
  if (labels.length > 0)
    return `from svc.run_label l join svc.run on run.seq = l.run_seq
      where l.tenant_id = :tenantId and l.label = :label and l.run_seq < :before and l.run_seq >= :first`;
  if (waitingReason === 'plugin' || waitingReason === 'decision')
    return ofRuns(`${STUCK} and reason = '${waitingReason}'`);
  if (waitingReason !== undefined || paused) return ofRuns(LIVE);
  switch (statusSet(status)) {
    case 'all':
      return ofRuns('true');
    case 'live':
      return ofRuns(LIVE);
    case 'unsuccessful':
      return ofRuns(UNSUCCESSFUL);
    case 'notSucceeded':
      return `from (select * ${ofRuns(LIVE)} union all select * ${ofRuns(UNSUCCESSFUL)}) as run`;
  }
}

function valuesOf(tenantId: string, filter: RunFilter): Record<string, unknown> {
  const { kind = null, status = null, waitingReason = null, paused = null, workflowId = null } = filter;
  const { from = null, to = null, labels = [], search = '' } = filter;
  const texts = searchedTexts(storable(search));
  const names = labels.map(storable);
  return {
    ...{
      tenantId,
      kind,
      status,
      waitingReason,
      paused,
      workflowId,
      from,
      to,
      labels: names,
      label: names[0],
    },
    ...texts,
  };
}
