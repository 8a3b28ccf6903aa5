import { useLocation } from 'preact-iso';
import type { Alert, AlertState } from '../../../contracts/alert-records.ts';
import { usePages } from '../../api/pages.ts';
import type { Column } from '../../ui/data-table.tsx';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { Page } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { useRefresh } from '../../ui/use-refresh.ts';
import { Channels } from './channels.tsx';
import { KIND_NAMES } from './kinds.ts';
import { Rules } from './rules.tsx';
import { Silences } from './silences.tsx';
import { Views } from './views.tsx';

/** Alerts, rules, channels or silences: the address decides. */
export default function Alerts() {
  const { view } = useLocation().query;
  if (view === 'rules') return <Rules />;
  if (view === 'channels') return <Channels />;
  return view === 'silences' ? <Silences /> : <List />;
}

const STATES: readonly AlertState[] = ['firing', 'silenced', 'resolved'];
const FILTERS = [
  { name: 'state', label: 'State', options: STATES },
  { name: 'kind', label: 'Kind', options: KIND_NAMES },
  { name: 'rule', label: 'Rule' },
  { name: 'object', label: 'Object', placeholder: 'id' },
] as const;
const NAMES = FILTERS.map(({ name }) => name);
const PAGE = 100;

function List() {
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listAlerts', { ...filters, limit: PAGE } as never);
  useRefresh(pages, { keyOf: ({ id }) => id, pageSize: PAGE, everyMs: 3000 });
  const words = NAMES.flatMap((name) => (filters[name] ? [`--${name} ${shellWord(filters[name])}`] : []));
  return (
    <Page title="Alerts" command={['svc alerts list', ...words].join(' ')}>
      <Views current="" />
      <Filters filters={FILTERS} values={filters} onChange={change} />
      <PagedTable label="Alerts" pages={pages} columns={COLUMNS} keyOf={({ id }) => id} empty={<None />} />
    </Page>
  );
}

function None() {
  return (
    <Empty command="svc alerts test --channel <channel>">
      No alert matches. Rules decide what alerts; a test shows that a channel delivers:
    </Empty>
  );
}

const COLUMNS: ReadonlyArray<Column<Alert>> = [
  { name: 'State', value: ({ state }) => <Status value={state} /> },
  { name: 'Alert', value: ({ id, title }) => <a href={`/studio/alerts/${id}`}>{title}</a> },
  { name: 'Severity', value: ({ severity }) => severity },
  { name: 'Rule', value: ({ rule }) => rule },
  { name: 'Times', isNumber: true, value: ({ count }) => count },
  { name: 'First', value: ({ firstAt }) => <Time ms={firstAt} /> },
  { name: 'Last', value: ({ lastAt }) => <Time ms={lastAt} /> },
  { name: 'Acknowledged', value: ({ acknowledgedBy }) => acknowledgedBy ?? '–' },
];
