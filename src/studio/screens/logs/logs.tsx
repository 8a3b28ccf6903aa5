import { useState } from 'preact/hooks';
import type { LogRecord } from '../../../contracts/logs.ts';
import { useQuery } from '../../api/query.ts';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { Page } from '../../ui/page.tsx';
import { shellWord, timeFlag } from '../../ui/shell-word.ts';
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
const POLL_MS = 3000;
const MAX_SHOWN = 500;

type Filtered = Partial<Record<(typeof NAMES)[number], string>>;

export default function Logs() {
  const [filters, change] = useFilters(NAMES);
  const [isLive, setLive] = useState(true);
  const { data, error, reload } = useQuery(
    'queryLogs',
    { query: { ...filters, limit: MAX_SHOWN } as never },
    isLive ? { everyMs: POLL_MS } : {},
  );
  return (
    <Page
      title="Logs"
      command={commandOf(filters)}
      actions={
        <button type="button" onClick={() => setLive(!isLive)}>
          {isLive ? 'Pause' : 'Resume'}
        </button>
      }
    >
      <Filters filters={FILTERS} values={filters} onChange={change} />
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="logs" />}
      {data?.items.length === 0 && <Empty>No line matches.</Empty>}
      {data && data.total > data.items.length && <p>The newest {data.items.length} lines are shown.</p>}
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

/** Returns the command of the same lines. `svc logs` has no flag for the end of a period. */
function commandOf({ level, service, pluginId, traceId, runId, search, from }: Filtered): string {
  const since = from && timeFlag(from);
  const flags = { level, plugin: pluginId, 'trace-id': traceId, run: runId, search, since };
  const words = Object.entries(flags).flatMap(([name, value]) =>
    value ? [`--${name} ${shellWord(value)}`] : [],
  );
  return ['svc logs -f', ...(service ? [shellWord(service)] : []), ...words].join(' ');
}

function Line({ record: { time, level, serviceId, message, traceId } }: { record: LogRecord }) {
  return (
    <li class={level}>
      <Time ms={time} /> {level} {serviceId}: {message} {traceId && <TraceLink id={traceId} label="trace" />}
    </li>
  );
}
