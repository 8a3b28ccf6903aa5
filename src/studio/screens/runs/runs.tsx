import { useEffect, useState } from 'preact/hooks';
import type { WorkflowRun } from '../../../contracts/workflow-records.ts';
import { usePages } from '../../api/pages.ts';
import { BulkBar } from '../../ui/bulk/bulk-bar.tsx';
import { useBulkList } from '../../ui/bulk/use-bulk-list.ts';
import { Filters, filtersText, useFilters } from '../../ui/filters.tsx';
import { Page } from '../../ui/page.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { VirtualList } from '../../ui/virtual-list.tsx';
import { labelTexts } from './labels.ts';
import { RUN_STATUSES, statusesOf } from './statuses.ts';
import { whyWaiting } from './why.ts';
import { WorkflowPause } from './workflow-pause.tsx';

const FILTERS = [
  { name: 'workflowId', label: 'Workflow' },
  { name: 'status', label: 'Status', options: RUN_STATUSES },
  { name: 'paused', label: 'Paused', options: ['true'] },
  { name: 'label', label: 'Label', placeholder: 'key:value' },
  { name: 'from', label: 'Since', placeholder: '2026-01-31T00:00:00Z' },
  { name: 'to', label: 'Before', placeholder: '2026-01-31T01:00:00Z' },
  { name: 'search', label: 'Text', placeholder: 'id or input' },
] as const;
const NAMES = FILTERS.map(({ name }) => name);
const ROW_HEIGHT = 44;
const PAGE = 200;
/** Runs that fill a screen. */
const FIRST_SCREEN = 50;

export default function Runs() {
  const [filters, change] = useFilters(NAMES);
  const conditions = { ...filters, status: statusesOf(filters.status) };
  const pages = usePages('listRuns', { ...conditions, limit: PAGE } as never);
  const [selected, setSelected] = useState<string>();
  const { items, isLoading, isComplete, error, loadMore } = pages;
  // A page of a search can be short although more runs match.
  const isSearching = !isComplete && !error && items.length < FIRST_SCREEN;
  useEffect(() => {
    if (isSearching && !isLoading) loadMore();
  }, [isSearching, isLoading]);
  const { chosen, bulk } = useBulkList({ list: 'bulk-runs', filters, pages, hrefOf });
  return (
    <Page
      title="Runs"
      command={commandOf(filters)}
      actions={
        <>
          {filters.workflowId && <WorkflowPause workflowId={filters.workflowId} />}
          <button type="button" onClick={pages.reload}>
            Refresh
          </button>
        </>
      }
    >
      <Filters filters={FILTERS} values={filters} onChange={change} />
      <BulkBar
        {...{ bulk, noun: 'runs', chosen: chosen.keys.size, onClear: chosen.clear }}
        actions={runActions(conditions, filtersText(FILTERS, filters), [...chosen.keys])}
      />
      {pages.error && <Failure error={pages.error} onRetry={pages.reload} />}
      {isSearching && <Loading what="runs" />}
      {!error && isComplete && items.length === 0 && <None />}
      {pages.items.length > 0 && (
        <div class="list runs">
          <VirtualList
            label="Runs"
            items={pages.items}
            keyOf={({ id }) => id}
            rowHeight={ROW_HEIGHT}
            selected={selected}
            onSelect={setSelected}
            hrefOf={hrefOf}
            onEnd={pages.loadMore}
            chosen={chosen}
          >
            {(run) => <Row run={run} />}
          </VirtualList>
          <p class="keys">
            <kbd>j</kbd> <kbd>k</kbd> select, <kbd>Enter</kbd> open, <kbd>x</kbd> choose
          </p>
        </div>
      )}
    </Page>
  );
}

const hrefOf = ({ id }: WorkflowRun): string => `/studio/runs/${id}`;

function runActions(filter: object, selection: string, runIds: readonly string[]) {
  const action = (endpoint: 'cancelRuns' | 'rerunRuns', label: string) => ({
    label,
    chosen: { endpoint, label, selection: 'chosen rows', body: { runIds } },
    all: { endpoint, label, selection, body: { filter } },
  });
  return [action('cancelRuns', 'Cancel'), action('rerunRuns', 'Rerun')];
}

function Row({ run }: { run: WorkflowRun }) {
  const { workflowId, status, createdAt, startedAt, finishedAt, error, labels } = run;
  return (
    <>
      <Status value={status} />
      <span class="name">{workflowId}</span>
      <span class="reason">{[...labelTexts(labels), error?.message ?? whyWaiting(run)].join(' ')}</span>
      <span class="number">
        <Duration ms={startedAt !== null && finishedAt !== null ? finishedAt - startedAt : null} />
      </span>
      <Time ms={createdAt} />
    </>
  );
}

function None() {
  return <Empty command="svc workflows run <workflow>">No run matches. Start one:</Empty>;
}

const FLAGS = {
  workflowId: 'workflow',
  from: 'since',
  to: 'until',
  search: 'search',
} as const;

function commandOf({
  label,
  status,
  paused,
  ...filters
}: Partial<Record<(typeof NAMES)[number], string>>): string {
  const words = Object.entries(filters).map(
    ([name, value]) => `--${FLAGS[name as keyof typeof FLAGS]} ${shellWord(value)}`,
  );
  const statuses = (statusesOf(status) ?? []).map((each) => `--status ${shellWord(each)}`);
  const labels = label ? [`--label ${shellWord(label.replace(':', '='))}`] : [];
  return ['svc workflows runs', ...statuses, ...(paused ? ['--paused'] : []), ...words, ...labels].join(' ');
}
