import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { MessageDelivery, MessageDetails } from '../../../contracts/message-records.ts';
import { call } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { useCan } from '../../api/role.ts';
import { endpointHref, IS_PORTAL, messageHref } from '../../app/portal-address.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Json } from '../../ui/json.tsx';
import { MoreButton } from '../../ui/more-button.tsx';
import { Neighbours } from '../../ui/neighbours.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { TraceLink } from '../../ui/trace-link.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { useRefresh } from '../../ui/use-refresh.ts';
import { ObjectAlerts } from '../alerts/object-alerts.tsx';
import { Attempts, keyOf } from '../endpoints/attempts.tsx';
import { countsText, statusOf } from './message-status.tsx';
import { Origin } from './origin.tsx';

const POLL_MS = IS_PORTAL ? 10_000 : 1500;

/** One message: its data, its status at each endpoint, and its attempts. A portal names it by `id`. */
export default function Message(props: { id?: string }) {
  const route = useRoute();
  const id = props.id ?? route.params.id!;
  const [isOpen, setOpen] = useState(true);
  const options = { everyMs: isOpen ? POLL_MS : 10_000 };
  const { data, error, reload } = useQuery('getMessage', { params: { id } }, options);
  const nowOpen = data !== undefined && data.deliveries.waiting + data.deliveries.retrying > 0;
  if (data && nowOpen !== isOpen) setOpen(nowOpen);
  const action = useAction();
  const canEdit = useCan('editor');
  const replay = (endpointId?: string) =>
    action.run(async () => {
      const body = endpointId === undefined ? {} : { endpointId };
      const { items, skipped } = await call('replayMessage', { params: { id }, body });
      outdate('getMessage', 'listMessages');
      const left = skipped > 0 ? ` ${skipped} were left out: disabled, deleted, or not done yet.` : '';
      return `The message is sent again to ${items.length} ${items.length === 1 ? 'endpoint' : 'endpoints'}.${left}`;
    });
  return (
    <Page
      title={data ? data.type : 'Message'}
      {...(IS_PORTAL ? {} : { command: `svc messages show ${id}` })}
      actions={
        <>
          <Neighbours href={messageHref(id)} />
          {canEdit && data && data.endpoints.length > 0 && (
            <button type="button" class="primary" disabled={action.isBusy} onClick={() => replay()}>
              Replay
            </button>
          )}
        </>
      }
    >
      <Notice action={action} />
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the message" />}
      {data && <Details {...{ message: data, action, canEdit, replay }} />}
    </Page>
  );
}

interface DetailsProps {
  message: MessageDetails;
  action: Action;
  canEdit: boolean;
  replay: (endpointId: string) => void;
}

function Details({ message, action, canEdit, replay }: DetailsProps) {
  const { id, application, timestamp, createdAt, bodyBytes, traceId, deliveries, data, endpoints } = message;
  return (
    <>
      <p class="verdict">
        <Status value={statusOf(deliveries)} /> {countsText(deliveries)}
      </p>
      <Facts
        facts={[
          ['Id', <code key="id">{id}</code>],
          ['Application', application],
          ['Time of the event', <Time key="event" ms={timestamp} />],
          ['Accepted', <Time key="accepted" ms={createdAt} />],
          ['Body', `${bodyBytes} bytes`],
          ['Trace', IS_PORTAL ? null : <TraceLink key="trace" id={traceId} />],
        ]}
      />
      <Section title="Endpoints">
        {endpoints.length === 0 ? (
          <Empty {...(IS_PORTAL ? {} : { command: 'svc endpoints list' })}>
            No endpoint had this event type and application when the message was accepted.
          </Empty>
        ) : (
          <DataTable
            label="Endpoints of the message"
            columns={columns(action, canEdit, replay)}
            items={endpoints}
            keyOf={({ endpointId }) => endpointId}
          />
        )}
      </Section>
      {!IS_PORTAL && <Origin traceId={traceId} />}
      {!IS_PORTAL && <ObjectAlerts id={id} />}
      <AttemptTimeline id={id} />
      <Section title="Data">
        <Json value={data} label="Data of the message" />
      </Section>
    </>
  );
}

const columns = (
  action: Action,
  canEdit: boolean,
  replay: (endpointId: string) => void,
): ReadonlyArray<Column<MessageDelivery>> => [
  {
    name: 'Endpoint',
    value: ({ endpointId, url }) =>
      url === null ? `${endpointId} (deleted)` : <a href={endpointHref(endpointId)}>{url}</a>,
  },
  { name: 'Status', value: ({ status }) => <Status value={status} /> },
  { name: 'Attempts', isNumber: true, value: ({ attempts }) => attempts },
  { name: 'Last answer', value: ({ lastStatus }) => (lastStatus === null ? '–' : `HTTP ${lastStatus}`) },
  { name: 'Last error', value: ({ lastError }) => lastError ?? '' },
  {
    name: 'Next attempt',
    value: ({ nextAttemptAt }) => (nextAttemptAt === null ? '–' : <Time ms={nextAttemptAt} />),
  },
  ...(canEdit
    ? [
        {
          name: 'Actions',
          value: ({ endpointId, url, status }: MessageDelivery) => (
            <button
              type="button"
              aria-label={`Replay to ${url ?? endpointId}`}
              disabled={action.isBusy || url === null || !['dead', 'succeeded'].includes(status)}
              onClick={() => replay(endpointId)}
            >
              Replay
            </button>
          ),
        },
      ]
    : []),
];

const PAGE = 50;

/** Attempts of a message, newest first. */
function AttemptTimeline({ id }: { id: string }) {
  const pages = usePages('listMessageAttempts', { limit: PAGE } as never, { id });
  useRefresh(pages, { keyOf, pageSize: PAGE, everyMs: POLL_MS });
  return (
    <Section title="Attempts">
      {pages.error && <Failure error={pages.error} onRetry={pages.reload} />}
      {!pages.error &&
        pages.items.length === 0 &&
        (pages.isLoading ? <Loading what="attempts" /> : <Empty>There was no attempt yet.</Empty>)}
      {pages.items.length > 0 && <Attempts attempts={pages.items} label="Attempts" of="message" />}
      <MoreButton pages={pages} />
    </Section>
  );
}
