import { useState } from 'preact/hooks';
import type { WebhookDelivery } from '../../../contracts/webhook-deliveries.ts';
import { call } from '../../api/call.ts';
import { type LiveEvent, useLive } from '../../api/live.ts';
import { usePages } from '../../api/pages.ts';
import { useQuery } from '../../api/query.ts';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { Page } from '../../ui/page.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { VirtualList } from '../../ui/virtual-list.tsx';
import { shortReason } from './advice.ts';
import { isPaused } from './why.tsx';

const STATUSES = [
  ...['accepted', 'running', 'retrying', 'succeeded', 'failed', 'dead', 'interrupted'],
  ...['refused', 'challenge', 'duplicate'],
];
const FILTERS = [
  { name: 'status', label: 'Status', options: STATUSES },
  { name: 'pluginId', label: 'Plugin' },
  { name: 'event', label: 'Event' },
  { name: 'since', label: 'Since', placeholder: '2026-01-31T00:00:00Z' },
  { name: 'search', label: 'Text', placeholder: 'id, body or header' },
] as const;
const NAMES = FILTERS.map(({ name }) => name);
const PAGE = 200;
const ROW_HEIGHT = 44;

export default function Deliveries() {
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listDeliveries', { ...filters, limit: PAGE } as never);
  const [isLive, setLive] = useState(true);
  const [selected, setSelected] = useState(0);
  const [notice, setNotice] = useState('');
  const webhooks = useQuery('listWebhooks', {}, { everyMs: 30_000 });
  const { pluginId, event } = filters;
  const live = useLive(
    'streamDeliveries',
    { query: { pluginId, event } as never },
    {
      isOn: isLive,
      onEvent: (news) => pages.update((items) => merged(items, news, filters)),
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
    if (pressed.key === 'r' && !pressed.ctrlKey && !pressed.metaKey && isList(pressed.target))
      void replay(pages.items[selected]);
  };
  return (
    <Page
      title="Deliveries"
      command={commandOf(filters)}
      actions={
        <button type="button" aria-pressed={isLive} onClick={() => setLive(!isLive)}>
          {isLive ? `Pause (${live === 'live' ? 'live' : 'connecting'})` : 'Resume'}
        </button>
      }
    >
      <Filters filters={FILTERS} values={filters} onChange={change} />
      <p class="notice" role="status">
        {notice}
      </p>
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
            hrefOf={({ webhookId }) => `/studio/deliveries/${webhookId}`}
            onEnd={pages.loadMore}
          >
            {(delivery) => (
              <Row delivery={delivery} isPaused={isPaused(webhooks.data?.items ?? [], delivery)} />
            )}
          </VirtualList>
          <p class="keys">
            <kbd>j</kbd> <kbd>k</kbd> select, <kbd>Enter</kbd> open, <kbd>r</kbd> replay
          </p>
        </div>
      )}
    </Page>
  );
}

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

/** Adds a delivery of the live stream, or replaces it. Filters of the list that the stream lacks are applied here. */
function merged(
  items: readonly WebhookDelivery[],
  { event, data }: LiveEvent,
  { status, search, since }: { status?: string; search?: string; since?: string },
): readonly WebhookDelivery[] {
  if (event !== 'delivery' && event !== 'ended') return items;
  const delivery = data as WebhookDelivery;
  const index = items.findIndex(({ webhookId }) => webhookId === delivery.webhookId);
  if (index >= 0) return items.with(index, { ...items[index]!, ...delivery });
  const isShown = !search && !since && (!status || delivery.status === status);
  return isShown && event === 'delivery' ? [delivery, ...items] : items;
}

function commandOf(filters: Partial<Record<string, string>>): string {
  const words = NAMES.flatMap((name) => {
    const value = filters[name];
    return value ? [`--${name === 'pluginId' ? 'plugin' : name} ${shellWord(value)}`] : [];
  });
  return ['svc webhooks deliveries', ...words].join(' ');
}

function isList(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('[role="listbox"]') !== null;
}
