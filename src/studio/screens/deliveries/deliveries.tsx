import { useState } from 'preact/hooks';
import type { WebhookDelivery } from '../../../contracts/webhook-deliveries.ts';
import { call } from '../../api/call.ts';
import { useLive } from '../../api/live.ts';
import { usePages } from '../../api/pages.ts';
import { useQuery } from '../../api/query.ts';
import { BulkBar } from '../../ui/bulk/bulk-bar.tsx';
import { useBulkList } from '../../ui/bulk/use-bulk-list.ts';
import { Filters, filtersText, useFilters } from '../../ui/filters.tsx';
import { Page } from '../../ui/page.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { VirtualList } from '../../ui/virtual-list.tsx';
import { shortReason } from './advice.ts';
import { combined, merged } from './live-list.ts';
import { isPaused } from './paused.ts';
import { replayActions } from './replay-actions.ts';
import { FAILURES, statusesOf } from './statuses.ts';

const STATUSES = [
  FAILURES,
  ...['accepted', 'running', 'retrying', 'succeeded', 'failed', 'dead', 'interrupted'],
  ...['refused', 'challenge', 'duplicate'],
];
const FILTERS = [
  { name: 'status', label: 'Status', options: STATUSES },
  { name: 'pluginId', label: 'Plugin' },
  { name: 'event', label: 'Event' },
  { name: 'since', label: 'Since', placeholder: '2026-01-31T00:00:00Z' },
  { name: 'until', label: 'Before', placeholder: '2026-01-31T01:00:00Z' },
  { name: 'search', label: 'Text', placeholder: 'id, body, header or result' },
] as const;
const NAMES = FILTERS.map(({ name }) => name);
const PAGE = 200;
const ROW_HEIGHT = 44;
const STATES = { live: 'live', connecting: 'connecting', waiting: 'connecting', off: 'not live' } as const;

export default function Deliveries() {
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listDeliveries', {
    ...filters,
    status: statusesOf(filters.status),
    limit: PAGE,
  } as never);
  const [isLive, setLive] = useState(true);
  const [selected, setSelected] = useState<string>();
  const [notice, setNotice] = useState('');
  const { chosen, bulk } = useBulkList({ list: 'bulk-deliveries', filters, pages, hrefOf });
  const webhooks = useQuery('listWebhooks', {}, { everyMs: 30_000 });
  const { pluginId, event } = filters;
  const live = useLive(
    'streamDeliveries',
    { query: { pluginId, event } as never },
    {
      // The stream has no text search.
      isOn: isLive && !filters.search,
      onEvent: (news) => {
        // The list was read before the stream began. What arrived between the two is in a second reading.
        if (news.event === 'hello') pages.refresh(combined);
        else pages.update((items) => merged(items, news, filters));
      },
    },
  );
  const replay = async (delivery: WebhookDelivery | undefined): Promise<void> => {
    if (!delivery) return;
    try {
      await call('replayDelivery', { params: { webhookId: delivery.webhookId } });
      setNotice(`Delivery ${delivery.webhookId} is replayed.`);
    } catch (error) {
      setNotice((error as Error).message);
    }
  };
  const onKeyDown = (pressed: KeyboardEvent): void => {
    if (pressed.key !== 'r' || pressed.ctrlKey || pressed.metaKey || pressed.repeat) return;
    if (isList(pressed.target)) void replay(pages.items.find(({ webhookId }) => webhookId === selected));
  };
  return (
    <Page
      title="Deliveries"
      command={commandOf(filters)}
      actions={
        <button type="button" aria-pressed={isLive} onClick={() => setLive(!isLive)}>
          {isLive ? `Pause (${STATES[live]})` : 'Resume'}
        </button>
      }
    >
      <Filters filters={FILTERS} values={filters} onChange={change} />
      <p class="notice" role="status">
        {notice}
      </p>
      <BulkBar
        {...{ bulk, noun: 'deliveries', chosen: chosen.keys.size, onClear: chosen.clear }}
        actions={replayActions(filters, filtersText(FILTERS, filters), [...chosen.keys])}
      />
      {pages.error && <Failure error={pages.error} onRetry={pages.reload} />}
      {!pages.error &&
        pages.items.length === 0 &&
        (pages.isLoading ? <Loading what="deliveries" /> : <None />)}
      {pages.items.length > 0 && (
        // biome-ignore lint/a11y/noStaticElementInteractions: the list inside takes the keys.
        <div class="list deliveries" onKeyDown={onKeyDown}>
          <VirtualList
            label="Deliveries"
            items={pages.items}
            keyOf={({ webhookId }) => webhookId}
            rowHeight={ROW_HEIGHT}
            selected={selected}
            onSelect={setSelected}
            hrefOf={hrefOf}
            onEnd={pages.loadMore}
            chosen={chosen}
          >
            {(delivery) => (
              <Row delivery={delivery} isPaused={isPaused(webhooks.data?.items ?? [], delivery)} />
            )}
          </VirtualList>
          <p class="keys">
            <kbd>j</kbd> <kbd>k</kbd> select, <kbd>Enter</kbd> open, <kbd>r</kbd> replay, <kbd>x</kbd> choose
          </p>
        </div>
      )}
    </Page>
  );
}

const hrefOf = ({ webhookId }: WebhookDelivery): string => `/studio/deliveries/${webhookId}`;

function Row({ delivery, isPaused: isHeld }: { delivery: WebhookDelivery; isPaused: boolean }) {
  const { status, pluginId, event, instanceId, receivedAt, durationMs } = delivery;
  return (
    <>
      <Status value={status} />
      <span class="name">
        {pluginId}/{event}
        {instanceId && `/${instanceId}`}
      </span>
      <span class="reason">{shortReason(delivery, isHeld)}</span>
      <span class="number">
        <Duration ms={durationMs} />
      </span>
      <Time ms={receivedAt} />
    </>
  );
}

function None() {
  return (
    <Empty command="svc webhooks send <plugin> <event>">
      No delivery matches. A sample delivery shows that the way from the sender to the handler works:
    </Empty>
  );
}

function commandOf(filters: Partial<Record<string, string>>): string {
  const words = NAMES.flatMap((name) => {
    const value = filters[name];
    if (name === 'status') return (statusesOf(value) ?? []).map((status) => `--status ${shellWord(status)}`);
    return value ? [`--${name === 'pluginId' ? 'plugin' : name} ${shellWord(value)}`] : [];
  });
  return ['svc webhooks deliveries', ...words].join(' ');
}

function isList(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('[role="listbox"]') !== null;
}
