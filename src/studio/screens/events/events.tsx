import { useEffect, useState } from 'preact/hooks';
import type { AnalyticsEvent } from '../../../contracts/analytics.ts';
import { useLive } from '../../api/live.ts';
import { useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { Page } from '../../ui/page.tsx';
import { shellWord, timeFlag } from '../../ui/shell-word.ts';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { TraceLink } from '../../ui/trace-link.tsx';

const FILTERS = [
  { name: 'type', label: 'Type', placeholder: 'workflow.run.failed' },
  { name: 'source', label: 'Source', placeholder: 'svc or a plugin' },
  { name: 'traceId', label: 'Trace' },
  { name: 'from', label: 'Since', placeholder: '2026-01-31T00:00:00Z' },
] as const;
const NAMES = FILTERS.map(({ name }) => name);
const PAGE = 200;
/** Maximum number of events that the page keeps. */
const MAX_SHOWN = 500;

export default function Events() {
  const [filters, change] = useFilters(NAMES);
  const key = JSON.stringify(filters);
  const [isLive, setLive] = useState(true);
  const [news, setNews] = useState<readonly AnalyticsEvent[]>([]);
  useEffect(() => setNews([]), [key]);
  const query = { ...filters, limit: PAGE };
  const { data, error, reload } = useQuery('listEvents', { query: query as never });
  const live = useLive(
    'listEvents',
    { query: { ...query, follow: '1' } as never },
    {
      isOn: isLive && !error,
      onEvent: (event) => setNews((known) => [event.data as AnalyticsEvent, ...known].slice(0, MAX_SHOWN)),
    },
  );
  const items = merged(news, data?.items ?? []);
  return (
    <Page
      title="Events"
      command={commandOf(filters)}
      actions={
        <button type="button" aria-pressed={isLive} onClick={() => setLive(!isLive)}>
          {isLive ? `Pause (${live === 'live' ? 'live' : 'connecting'})` : 'Resume'}
        </button>
      }
    >
      <Filters filters={FILTERS} values={filters} onChange={change} />
      {error && <Failure error={error} onRetry={reload} />}
      {!error && items.length === 0 && (data ? <None /> : <Loading what="events" />)}
      {!error && items.length > 0 && (
        <DataTable label="Events, newest first" columns={COLUMNS} items={items} keyOf={({ id }) => id} />
      )}
    </Page>
  );
}

function None() {
  return <Empty>No event matches. Plugins, runs and installations make events.</Empty>;
}

const COLUMNS: ReadonlyArray<Column<AnalyticsEvent>> = [
  { name: 'Time', value: ({ ts }) => <Time ms={Date.parse(ts)} /> },
  { name: 'Type', value: ({ type }) => <span class="whole">{type}</span> },
  { name: 'Source', value: ({ source }) => source.product },
  { name: 'Run', value: ({ runId }) => <RunLink id={runId} /> },
  {
    name: 'Trace',
    value: ({ ctx }) =>
      typeof ctx?.traceId === 'string' ? <TraceLink id={ctx.traceId} label="trace" /> : '',
  },
  { name: 'Content', value: ({ payload }) => <code>{contentOf(payload)}</code> },
];

/** Events without a workflow run carry the id of an execution, which has no screen. */
function RunLink({ id }: { id: string }) {
  return /^(?:run|job)_/.test(id) ? <a href={`/studio/runs/${id}`}>run</a> : <>–</>;
}

const MAX_CONTENT_CHARS = 300;

function contentOf(payload: unknown): string {
  const text = payload === undefined ? '' : JSON.stringify(payload);
  return text.length > MAX_CONTENT_CHARS ? `${text.slice(0, MAX_CONTENT_CHARS)}…` : text;
}

/** Joins the events of the stream and of the list. The stream repeats the latest events of the list. */
function merged(news: readonly AnalyticsEvent[], listed: readonly AnalyticsEvent[]): AnalyticsEvent[] {
  const byId = new Map([...news, ...listed].map((event) => [event.id, event]));
  return [...byId.values()].sort((a, b) => b.ts.localeCompare(a.ts)).slice(0, MAX_SHOWN);
}

/** Returns the command of the same list. Only `svc events list` can start at a time. */
function commandOf({ type, source, traceId, from }: Partial<Record<string, string>>): string {
  const since = from && timeFlag(from);
  const words = Object.entries({ type, source, 'trace-id': traceId, since }).flatMap(([name, value]) =>
    value ? [`--${name} ${shellWord(value)}`] : [],
  );
  return [since ? 'svc events list' : 'svc events tail', ...words].join(' ');
}
