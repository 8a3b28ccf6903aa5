import { setImmediate as turn } from 'node:timers/promises';
import { PAUSED } from '../../pause-conditions.ts';
import type { RunFilter } from '../../ports/index.ts';
import {
  hoursTouched,
  MAX_SCANNED_ROWS,
  MAX_SEARCHED_BYTES,
  matchesFilter,
  searchedTexts,
  statusSet,
} from '../../run-search.ts';
import type { Database } from '../database.ts';
import { LIVE, STUCK } from './conditions.ts';
import type { RunRow } from './run-rows.ts';

/** Rows and bytes of inputs that one turn of the event loop compares with a search text. */
const TURN_ROWS = 256;
const TURN_BYTES = 2 * 1024 * 1024;

type Listed = Pick<RunRow, 'seq' | 'kind' | 'status' | 'reason' | 'workflowId' | 'createdAt' | 'labels'> & {
  isPaused: 0 | 1;
};

/** Runs of a page, newest first, and the run number at which the next page starts. */
interface RunPage<Run> {
  runs: Run[];
  next: number | null;
}

/** Run numbers that a scan still has to read, from `before` (exclusive) down to `first`. */
interface ScanRange {
  first: number;
  before: number;
}

interface SearchedRow {
  seq: number;
  search: string;
  escaped: string;
}

interface Budget {
  rows: number;
  bytes: number;
}

/** Part of a page. `isOver` tells that no more rows are left. */
interface ScannedPart<Run> extends Budget {
  runs: Run[];
  last: number | null;
  isOver: boolean;
}

/** Reads pages of runs. A search for a text gives way to other work between its turns. */
export class RunLists {
  readonly #db: Database;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Database) {
    this.#db = db;
    this.#sql = statements(db);
  }

  /**
   * Returns a page of runs as `read` returns them. Scans read only the columns that the filter compares. `read` is called
   * only for the runs of the page.
   */
  async page<Run>(tenantId: string, filter: RunFilter, read: (seq: number) => Run): Promise<RunPage<Run>> {
    const range = await this.#db.read(() => this.#rangeOf(tenantId, filter));
    const isSearch = filter.search !== undefined;
    const rest = { rows: MAX_SCANNED_ROWS, bytes: MAX_SEARCHED_BYTES };
    const page: RunPage<Run> = { runs: [], next: null };
    while (range) {
      const budget = {
        rows: isSearch ? Math.min(rest.rows, TURN_ROWS) : rest.rows,
        bytes: Math.min(rest.bytes, TURN_BYTES),
      };
      const wanted = filter.limit - page.runs.length;
      const part = await this.#db.read(() => this.#scan(tenantId, filter, { range, budget, wanted, read }));
      page.runs.push(...part.runs);
      if (part.isOver) return { ...page, next: null };
      page.next = part.last;
      rest.rows -= part.rows;
      rest.bytes -= part.bytes;
      if (page.runs.length === filter.limit || rest.rows <= 0 || rest.bytes <= 0) return page;
      range.before = part.last ?? range.before;
      await turn();
    }
    return page;
  }

  /** Returns the range of run numbers that can match, or undefined if there is no such run. */
  #rangeOf(tenantId: string, filter: RunFilter): ScanRange | undefined {
    const before = filter.before ?? Number.MAX_SAFE_INTEGER;
    const found =
      filter.search === undefined ? undefined : this.#sql.ofId.get({ tenantId, id: filter.search });
    if (found) return { first: found.seq, before: Math.min(before, found.seq + 1) };
    const hours = hoursTouched(filter);
    if (!hours) return { first: 0, before };
    const { first, last } = this.#sql.ofHours.get({ tenantId, ...hours })!;
    return first === null || last === null ? undefined : { first, before: Math.min(before, last + 1) };
  }

  /** Reads the next rows of a page. Stops before the first row that exceeds the budget or the page. */
  #scan<Run>(
    tenantId: string,
    filter: RunFilter,
    {
      range,
      budget,
      wanted,
      read,
    }: { range: ScanRange; budget: Budget; wanted: number; read(seq: number): Run },
  ): ScannedPart<Run> {
    const search = filter.search === undefined ? undefined : searchedTexts(filter.search);
    const part: ScannedPart<Run> = { runs: [], last: null, isOver: false, rows: 0, bytes: 0 };
    for (const row of this.#rows(tenantId, filter, range)) {
      if (part.runs.length === wanted || part.rows === budget.rows || part.bytes >= budget.bytes) return part;
      part.rows++;
      part.last = row.seq;
      if (!matchesFilter(row, filter)) continue;
      const text = search && this.#textOf(row.seq, search);
      part.bytes += text?.bytes ?? 0;
      if (text?.isFound !== 0) part.runs.push(read(row.seq));
    }
    return { ...part, isOver: true };
  }

  #textOf(seq: number, search: ReturnType<typeof searchedTexts>): { bytes: number; isFound: 0 | 1 } {
    return this.#sql.text.get({ seq, ...search })!;
  }

  #rows(tenantId: string, filter: RunFilter, range: ScanRange): IterableIterator<Listed> {
    const [label] = filter.labels ?? [];
    if (label !== undefined) return this.#sql.labelled.iterate({ tenantId, label, ...range });
    const { workflowId = null } = filter;
    return this.#sql[indexOf(filter)].iterate({ tenantId, workflowId, ...range });
  }
}

/** Returns the smallest index that contains all runs that match the filter. */
function indexOf({ kind, status, waitingReason, paused, workflowId }: RunFilter) {
  if (waitingReason === 'plugin') return 'awaitsPlugin';
  if (waitingReason === 'decision') return 'awaitsDecision';
  if (waitingReason !== undefined || paused) return 'live';
  const ofStatuses = statusSet(status);
  if (ofStatuses !== 'all') return ofStatuses;
  if (workflowId !== undefined) return 'ofWorkflow';
  return kind === 'job' ? 'jobs' : 'all';
}

function statements(db: Database) {
  const columns = `run.seq, kind, status, reason, workflow_id as workflowId, created_at as createdAt, run.labels,
    ${PAUSED} as isPaused`;
  const runs = (condition: string, index = '') => `
      select ${columns} from run ${index}
      where tenant_id = :tenantId and seq < :before and seq >= :first ${condition}`;
  const listed = (...selects: string[]) =>
    db.prepare<[{ tenantId: string; workflowId: string | null } & ScanRange], Listed>(
      `${selects.join(' union all ')} order by seq desc`,
    );
  const live = runs(`and ${LIVE}`);
  const unsuccessful = runs(`and status in ('failed', 'timed_out', 'cancelled')`);
  return {
    all: listed(runs('')),
    ofWorkflow: listed(runs('and workflow_id = :workflowId', 'indexed by run_workflow')),
    jobs: listed(runs(`and kind = 'job'`, 'indexed by run_job')),
    live: listed(live),
    awaitsPlugin: listed(runs(`and ${STUCK} and reason = 'plugin'`)),
    awaitsDecision: listed(runs(`and ${STUCK} and reason = 'decision'`)),
    unsuccessful: listed(unsuccessful),
    // SQLite merges the two scans in the order of the list.
    notSucceeded: listed(live, unsuccessful),
    labelled: db.prepare<[{ tenantId: string; label: string } & ScanRange], Listed>(`
      select ${columns} from run_label l cross join run on run.seq = l.run_seq
      where l.tenant_id = :tenantId and l.label = :label and l.run_seq < :before and l.run_seq >= :first
      order by l.run_seq desc`),
    ofId: db.prepare<[{ tenantId: string; id: string }], { seq: number }>(
      'select seq from run where id = :id and tenant_id = :tenantId',
    ),
    ofHours: db.prepare<
      [{ tenantId: string; from: number; to: number }],
      { first: number | null; last: number | null }
    >(`
      select min(first_seq) as first, max(last_seq) as last from run_hour
      where tenant_id = :tenantId and hour >= :from and hour < :to`),
    // A large input is in its own table, under the number that follows the `@` in the row of the run.
    text: db.prepare<[SearchedRow], { bytes: number; isFound: 0 | 1 }>(`
      with run_text as (
        select id, iif(substr(input, 1, 1) = '@', (
          select body from large_value where run_seq = seq and n = cast(substr(input, 2) as integer)), input) as input
        from run where seq = :seq)
      select octet_length(input) as bytes,
        instr(input, :search) > 0 or id = :search or (:search <> :escaped and instr(input, :escaped) > 0) as isFound
      from run_text`),
  };
}
