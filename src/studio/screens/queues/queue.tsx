import { useRoute } from 'preact-iso';
import type { QueueItem, Queue as QueueRecord } from '../../../contracts/queue-records.ts';
import { call } from '../../api/call.ts';
import { type Pages, usePages } from '../../api/pages.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { MoreButton } from '../../ui/more-button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';

const STATUSES = ['waiting', 'leased', 'dead', 'acked'];
const FILTERS = [{ name: 'status', label: 'Status', options: STATUSES }] as const;
const NAMES = FILTERS.map(({ name }) => name);
const PAGE = 100;

export default function Queue() {
  const { queue } = useRoute().params as { queue: string };
  const params = { name: queue };
  const shown = useQuery('getQueue', { params }, { everyMs: 5_000 });
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listQueueItems', { ...filters, limit: PAGE } as never, params);
  const action = useAction();
  const { data } = shown;
  const reload = (): void => {
    outdate('getQueue', 'listQueues');
    pages.reload();
  };
  return (
    <Page
      title={queue}
      command={`svc queues show ${shellWord(queue)}`}
      actions={data && data.dead > 0 && <RetryDead queue={data} action={action} reload={reload} />}
    >
      <Notice action={action} />
      {shown.error && <Failure error={shown.error} onRetry={shown.reload} />}
      {data && <Counts queue={data} />}
      <Section title="Items">
        <Filters filters={FILTERS} values={filters} onChange={change} />
        <Items queue={queue} pages={pages} action={action} reload={reload} />
      </Section>
    </Page>
  );
}

function Counts({ queue }: { queue: QueueRecord }) {
  const { waiting, leased, dead, oldestAgeMs, settings } = queue;
  return (
    <Facts
      facts={[
        ['Waiting', waiting],
        ['Oldest', oldestAgeMs === null ? null : <Duration ms={oldestAgeMs} />],
        ['Leased', leased],
        ['Dead', dead],
        ['Attempts', settings.maxAttempts],
        ['Concurrency', settings.concurrency ?? 'no limit'],
        ['Lease', <Duration key="lease" ms={settings.leaseMs} />],
        ['In order', settings.order],
      ]}
    />
  );
}

interface ItemsProps {
  queue: string;
  pages: Pages<QueueItem>;
  action: Action;
  reload: () => void;
}

function Items({ queue, pages, action, reload }: ItemsProps) {
  if (pages.error) return <Failure error={pages.error} onRetry={pages.reload} />;
  if (pages.items.length === 0)
    return pages.isLoading ? <Loading what="items" /> : <Empty>No item matches.</Empty>;
  return (
    <>
      <DataTable
        label="Items"
        columns={columns(queue, action, reload)}
        items={pages.items}
        keyOf={({ id }) => id}
      />
      <MoreButton pages={pages} />
    </>
  );
}

const columns = (queue: string, action: Action, reload: () => void): ReadonlyArray<Column<QueueItem>> => [
  {
    name: 'Item',
    value: ({ id }) => (
      <a href={`/studio/queues/${encodeURIComponent(queue)}/${encodeURIComponent(id)}`}>{id}</a>
    ),
  },
  { name: 'Status', value: ({ status }) => <Status value={status} /> },
  { name: 'Attempt', value: ({ attempt }) => attempt, isNumber: true },
  { name: 'Received', value: ({ receivedAt }) => <Time ms={receivedAt} /> },
  { name: 'Last error', value: ({ lastError }) => lastError ?? '' },
  {
    name: 'Actions',
    value: ({ id, status }) => (
      <button
        type="button"
        disabled={status !== 'dead' || action.isBusy}
        onClick={() =>
          action.run(async () => {
            await call('retryItem', { params: { name: queue, id } });
            reload();
            return `The item ${id} waits again.`;
          })
        }
      >
        Retry
      </button>
    ),
  },
];

interface RetryDeadProps {
  queue: QueueRecord;
  action: Action;
  reload: () => void;
}

/** Retries the items that are dead now. Items that become dead meanwhile are not retried again. */
function RetryDead({ queue: { name, dead }, action, reload }: RetryDeadProps) {
  const retry = async (): Promise<string> => {
    const params = { name };
    let count = 0;
    let { nextCursor } = await call('retryDeadItems', { params, body: { dryRun: true } });
    while (nextCursor !== null) {
      const batch = await call('retryDeadItems', { params, body: { cursor: nextCursor } });
      count += batch.items.length;
      nextCursor = batch.nextCursor;
    }
    reload();
    return `${count} items wait again.`;
  };
  return (
    <button type="button" disabled={action.isBusy} onClick={() => action.run(retry)}>
      Retry {dead} dead
    </button>
  );
}
