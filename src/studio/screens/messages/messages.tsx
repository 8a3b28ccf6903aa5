import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { Message, MessageStatus } from '../../../contracts/message-records.ts';
import { usePages } from '../../api/pages.ts';
import { useCan } from '../../api/role.ts';
import { IS_PORTAL, messageHref, messagesHref } from '../../app/portal-address.ts';
import { BulkBar } from '../../ui/bulk/bulk-bar.tsx';
import type { BulkJob } from '../../ui/bulk/bulk-job.ts';
import { useBulkList } from '../../ui/bulk/use-bulk-list.ts';
import { Filters, filtersText, useFilters } from '../../ui/filters.tsx';
import { LazyDetails } from '../../ui/lazy-details.tsx';
import { Page } from '../../ui/page.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { useRefresh } from '../../ui/use-refresh.ts';
import { VirtualList } from '../../ui/virtual-list.tsx';
import { countsText, statusOf } from './message-status.tsx';

const STATUSES: readonly MessageStatus[] = ['waiting', 'retrying', 'succeeded', 'dead', 'cancelled'];
const FILTERS = [
  { name: 'status', label: 'Status', options: STATUSES },
  { name: 'type', label: 'Event type', placeholder: 'order.created' },
  { name: 'application', label: 'Application' },
  { name: 'endpointId', label: 'Endpoint', placeholder: 'ep_…' },
  { name: 'traceId', label: 'Trace' },
  { name: 'since', label: 'Since', placeholder: '2026-01-31T00:00:00Z' },
  { name: 'until', label: 'Before', placeholder: '2026-01-31T01:00:00Z' },
] as const;
/** A portal has one application only, and shows no traces. */
const SHOWN = FILTERS.filter(({ name }) => !(IS_PORTAL && ['application', 'traceId'].includes(name)));
type Name = (typeof FILTERS)[number]['name'];
type FilterValues = Partial<Record<Name, string>>;
const NAMES: readonly Name[] = SHOWN.map(({ name }) => name);
const FLAGS: Partial<Record<Name, string>> = { endpointId: 'endpoint', traceId: 'trace' };
const PAGE = 100;
const ROW_HEIGHT = 44;
const POLL_MS = IS_PORTAL ? 10_000 : 3000;

export default function Messages() {
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listMessages', { ...filters, limit: PAGE } as never);
  const [isLive, setLive] = useState(true);
  const [selected, setSelected] = useState<string>();
  useRefresh(pages, { keyOf: ({ id }) => id, pageSize: PAGE, everyMs: POLL_MS, isOn: isLive });
  const canEdit = useCan('editor');
  const isNew = useLocation().query.new === 'message';
  const { chosen, bulk } = useBulkList({ list: 'bulk-messages', filters, pages, hrefOf });
  return (
    <Page
      title="Messages"
      {...(IS_PORTAL ? {} : { command: commandOf(filters) })}
      actions={
        <button type="button" aria-pressed={isLive} onClick={() => setLive(!isLive)}>
          {isLive ? 'Pause (live)' : 'Resume'}
        </button>
      }
    >
      <DeadLetters isShown={filters.status === 'dead'} />
      <Filters filters={SHOWN} values={filters} onChange={change} />
      {canEdit && (
        <BulkBar
          {...{ bulk, noun: 'messages', chosen: chosen.keys.size, onClear: chosen.clear }}
          actions={[replay(filters, [...chosen.keys])]}
        />
      )}
      {pages.error && <Failure error={pages.error} onRetry={pages.reload} />}
      {!pages.error && pages.items.length === 0 && (pages.isLoading ? <Loading what="messages" /> : <None />)}
      {pages.items.length > 0 && (
        <div class="list messages">
          <VirtualList
            label="Messages"
            items={pages.items}
            keyOf={({ id }) => id}
            rowHeight={ROW_HEIGHT}
            selected={selected}
            onSelect={setSelected}
            hrefOf={hrefOf}
            onEnd={pages.loadMore}
            {...(canEdit ? { chosen } : {})}
          >
            {(message) => <Row message={message} />}
          </VirtualList>
          <p class="keys">
            <kbd>j</kbd> <kbd>k</kbd> select, <kbd>Enter</kbd> open
            {canEdit && (
              <>
                , <kbd>x</kbd> choose
              </>
            )}
          </p>
        </div>
      )}
      {canEdit && !IS_PORTAL && (
        <LazyDetails
          summary="Send a message"
          load={loadForm}
          props={{ onSent: pages.reload }}
          isOpen={isNew}
        />
      )}
    </Page>
  );
}

const loadForm = () => import('./send-message.tsx');
const hrefOf = ({ id }: Message): string => messageHref(id);

/** Links between all messages and the dead letters. */
function DeadLetters({ isShown }: { isShown: boolean }) {
  const links = [
    { label: 'All messages', href: messagesHref({}), isCurrent: !isShown },
    { label: 'Dead letters', href: messagesHref({ status: 'dead' }), isCurrent: isShown },
  ];
  return (
    <nav class="actions tabs" aria-label="Messages by outcome">
      {links.map(({ label, href, isCurrent }) => (
        <a key={label} href={href} aria-current={isCurrent ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}

/** Statuses at an endpoint whose messages can be sent again. */
const REPLAYABLE = ['dead', 'succeeded'];

function replay({ status, since, until, traceId, ...filters }: FilterValues, ids: readonly string[]) {
  const label = 'Replay';
  // The endpoint of the bulk action takes no trace.
  const canReplay = traceId === undefined && (status === undefined || REPLAYABLE.includes(status));
  const time = (name: string, text: string | undefined) =>
    text === undefined ? {} : { [name]: /^\d+$/.test(text) ? Number(text) : text };
  const chosen: BulkJob = { endpoint: 'replayMessage', label, selection: 'chosen rows', ids };
  const all: BulkJob = {
    ...{ endpoint: 'replayMessages', label },
    selection: filtersText(FILTERS, { status, since, until, ...filters } as FilterValues),
    body: { ...filters, ...time('since', since), ...time('until', until), status: status ?? 'all' },
  };
  return { label, chosen, all: canReplay ? all : undefined };
}

function Row({ message: { type, application, deliveries, createdAt, bodyBytes } }: { message: Message }) {
  return (
    <>
      <Status value={statusOf(deliveries)} />
      <span class="name">{type}</span>
      <span class="reason">
        {application && `${application}: `}
        {countsText(deliveries)}
      </span>
      <span class="number">{bodyBytes} B</span>
      <Time ms={createdAt} />
    </>
  );
}

function None() {
  if (IS_PORTAL) return <Empty>No message matches.</Empty>;
  return (
    <Empty command={`svc messages send order.created --data '{"id": 1}'`}>
      No message matches. Plugins send messages with <code>ctx.emit</code>. You can send one below, or in a
      terminal:
    </Empty>
  );
}

function commandOf(filters: FilterValues): string {
  const words = NAMES.flatMap((name) =>
    filters[name] ? [`--${FLAGS[name] ?? name} ${shellWord(filters[name])}`] : [],
  );
  return ['svc messages list', ...words].join(' ');
}
