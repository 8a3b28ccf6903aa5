import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { OutgoingEndpoint } from '../../../contracts/message-records.ts';
import { usePages } from '../../api/pages.ts';
import { useCan } from '../../api/role.ts';
import { endpointHref, IS_PORTAL } from '../../app/portal-address.ts';
import type { Column } from '../../ui/data-table.tsx';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { LazyDetails } from '../../ui/lazy-details.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { shellWord } from '../../ui/shell-word.ts';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { useRefresh } from '../../ui/use-refresh.ts';
import { type CreatedEndpoint, CreateEndpoint } from './create-endpoint.tsx';
import { EndpointState, successText } from './endpoint-state.tsx';
import { NewSecret } from './new-secret.tsx';
import { Toggle } from './toggle.tsx';

const FILTERS = [
  { name: 'application', label: 'Application' },
  { name: 'disabled', label: 'Disabled', options: ['true', 'false'] },
] as const;
const NAMES = FILTERS.map(({ name }) => name);
const PAGE = 100;
const POLL_MS = 10_000;

export default function Endpoints() {
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listEndpoints', { ...filters, limit: PAGE } as never);
  useRefresh(pages, { keyOf: ({ id }) => id, pageSize: PAGE, everyMs: POLL_MS });
  const action = useAction();
  const canEdit = useCan('editor');
  const isLink = useLocation().query.new === 'link';
  const [created, setCreated] = useState<CreatedEndpoint>();
  const words = [
    ...(filters.application ? [`--application ${shellWord(filters.application)}`] : []),
    ...(filters.disabled === 'true' ? ['--disabled'] : []),
  ];
  return (
    <Page title="Endpoints" {...(IS_PORTAL ? {} : { command: ['svc endpoints list', ...words].join(' ') })}>
      <p>
        An endpoint is a URL to which messages of its event types are sent, each with a signature that the
        receiver verifies.
      </p>
      {!IS_PORTAL && <Filters filters={FILTERS} values={filters} onChange={change} />}
      <Notice action={action} />
      {created && <NewSecret {...created} onClose={() => setCreated(undefined)} />}
      <PagedTable
        label="Endpoints"
        pages={pages}
        columns={columns(action, canEdit, pages.reload)}
        keyOf={({ id }) => id}
        empty={<None />}
      />
      {canEdit && (
        <CreateEndpoint
          action={action}
          onCreated={(shown) => {
            setCreated(shown);
            pages.reload();
          }}
        />
      )}
      {canEdit && !IS_PORTAL && (
        <LazyDetails summary="Links for customers" load={loadLinks} props={{}} isOpen={isLink} />
      )}
    </Page>
  );
}

const loadLinks = () => import('./portal-links.tsx');

function None() {
  if (IS_PORTAL) return <Empty>There are no endpoints yet.</Empty>;
  return (
    <Empty command="svc endpoints create https://example.com/webhooks">
      No endpoint matches. Create one below, or in a terminal:
    </Empty>
  );
}

const columns = (
  action: Action,
  canEdit: boolean,
  reload: () => void,
): ReadonlyArray<Column<OutgoingEndpoint>> => [
  { name: 'URL', value: ({ id, url }) => <a href={endpointHref(id)}>{url}</a> },
  { name: 'State', value: (endpoint) => <EndpointState endpoint={endpoint} /> },
  {
    name: 'Failing since',
    value: ({ failingSince }) => (failingSince === null ? '–' : <Time ms={failingSince} />),
  },
  { name: 'Success', isNumber: true, value: (endpoint) => successText(endpoint) },
  { name: 'Event types', value: ({ types }) => types.join(', ') },
  ...(IS_PORTAL
    ? []
    : [{ name: 'Application', value: ({ application }: OutgoingEndpoint) => application ?? '–' }]),
  { name: 'Description', value: ({ description }) => description ?? '' },
  ...(canEdit
    ? [
        {
          name: 'Actions',
          value: (endpoint: OutgoingEndpoint) => <Toggle {...{ endpoint, action, reload }} />,
        },
      ]
    : []),
];
