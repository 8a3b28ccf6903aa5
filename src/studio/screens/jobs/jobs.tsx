import type { Job } from '../../../contracts/jobs.ts';
import { call } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import type { Column } from '../../ui/data-table.tsx';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { TraceLink } from '../../ui/trace-link.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { RUN_STATUSES, statusesOf } from '../runs/statuses.ts';
import { whyJobWaits } from '../runs/why.ts';

const FILTERS = [
  { name: 'handler', label: 'Handler', placeholder: 'plugin/job' },
  { name: 'status', label: 'Status', options: RUN_STATUSES },
] as const;
const NAMES = FILTERS.map(({ name }) => name);
const PAGE = 100;
const ENDED = ['succeeded', 'failed', 'timed_out', 'cancelled', 'cancelling'];

export default function Jobs() {
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listJobs', {
    ...filters,
    status: statusesOf(filters.status),
    limit: PAGE,
  } as never);
  const action = useAction();
  return (
    <Page title="Jobs" command="svc jobs list">
      <Filters filters={FILTERS} values={filters} onChange={change} />
      <Notice action={action} />
      <PagedTable
        label="Jobs"
        pages={pages}
        columns={columns(action, pages.reload)}
        keyOf={({ id }) => id}
        empty={<None />}
      />
    </Page>
  );
}

function None() {
  return <Empty command="svc jobs submit <plugin/job>">No job matches. Submit one:</Empty>;
}

const columns = (action: Action, reload: () => void): ReadonlyArray<Column<Job>> => [
  { name: 'Status', value: ({ status }) => <Status value={status} /> },
  { name: 'Handler', value: ({ handler }) => handler },
  { name: 'Note', value: (job) => job.error?.message ?? whyJobWaits(job) ?? '' },
  { name: 'Attempts', value: ({ attempts }) => attempts, isNumber: true },
  {
    name: 'Duration',
    value: ({ startedAt, finishedAt }) => (
      <Duration ms={startedAt !== null && finishedAt !== null ? finishedAt - startedAt : null} />
    ),
    isNumber: true,
  },
  { name: 'Trace', value: ({ traceId }) => <TraceLink id={traceId} label="trace" /> },
  { name: 'Submitted', value: ({ createdAt }) => <Time ms={createdAt} /> },
  {
    name: 'Actions',
    value: ({ id, status }) => (
      <button
        type="button"
        disabled={ENDED.includes(status) || action.isBusy}
        onClick={() =>
          action.run(async () => {
            const reply = await call('cancelJob', { params: { jobId: id } });
            reload();
            return reply.cancelled ? `Job ${id} is cancelled.` : `Job ${id} had ended: ${reply.status}.`;
          })
        }
      >
        Cancel
      </button>
    ),
  },
];
