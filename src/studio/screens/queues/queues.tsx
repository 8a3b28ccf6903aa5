import type { Queue } from '../../../contracts/queue-records.ts';
import { useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Duration } from '../../ui/time.tsx';

export default function Queues() {
  const { data, error, reload } = useQuery('listQueues', {}, { everyMs: 5_000 });
  return (
    <Page title="Queues" command="svc queues list">
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="queues" />}
      {data?.items.length === 0 && (
        <Empty command={'svc queues put orders \'{"n": 1}\''}>
          There is no queue. A queue appears here with its first item:
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <DataTable label="Queues" columns={COLUMNS} items={data.items} keyOf={({ name }) => name} />
      )}
    </Page>
  );
}

const COLUMNS: ReadonlyArray<Column<Queue>> = [
  { name: 'Queue', value: ({ name }) => <a href={`/studio/queues/${encodeURIComponent(name)}`}>{name}</a> },
  { name: 'Waiting', value: ({ waiting }) => waiting, isNumber: true },
  { name: 'Leased', value: ({ leased }) => leased, isNumber: true },
  { name: 'Dead', value: ({ dead }) => dead, isNumber: true },
  { name: 'Oldest', value: ({ oldestAgeMs }) => <Duration ms={oldestAgeMs} />, isNumber: true },
  { name: 'Attempts', value: ({ settings }) => settings.maxAttempts, isNumber: true },
  { name: 'Concurrency', value: ({ settings }) => settings.concurrency ?? 'no limit', isNumber: true },
];
