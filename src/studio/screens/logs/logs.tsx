import type { LogRecord } from '../../../contracts/logs.ts';
import { useQuery } from '../../api/query.ts';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { TraceLink } from '../../ui/trace-link.tsx';

const FILTERS = [
  { name: 'level', label: 'Level and above', options: ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] },
  { name: 'service', label: 'Service', options: ['gateway', 'rest', 'workflow', 'marketplace', 'state'] },
  { name: 'pluginId', label: 'Plugin' },
  { name: 'traceId', label: 'Trace' },
  { name: 'runId', label: 'Run' },
  { name: 'search', label: 'Words' },
  { name: 'from', label: 'From', placeholder: '2026-01-31T00:00:00Z' },
  { name: 'to', label: 'Before', placeholder: '2026-01-31T01:00:00Z' },
] as const;
const NAMES = FILTERS.map(({ name }) => name);

export default function Logs() {
  const [filters, change] = useFilters(NAMES);
  const { data, error, reload } = useQuery(
    'queryLogs',
    { query: { ...filters, limit: 500 } as never },
    { everyMs: 3000 },
  );
  return (
    <Page title="Logs" command="svc logs -f">
      <Filters filters={FILTERS} values={filters} onChange={change} />
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="logs" />}
      {data?.items.length === 0 && <Empty>No line matches.</Empty>}
      {data && data.items.length > 0 && (
        <ol class="log tall" aria-label="Log lines, newest first">
          {data.items.map((record, index) => (
            <Line key={`${record.time}-${index}`} record={record} />
          ))}
        </ol>
      )}
    </Page>
  );
}

function Line({ record: { time, level, serviceId, message, traceId } }: { record: LogRecord }) {
  return (
    <li class={level}>
      <Time ms={time} /> {level} {serviceId}: {message} {traceId && <TraceLink id={traceId} label="trace" />}
    </li>
  );
}
