import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { Connection } from '../../../contracts/connections.ts';
import type { Reply } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { useCan } from '../../api/role.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { useAction } from '../../ui/use-action.ts';
import { AuthorizeLink } from './authorize-link.tsx';
import { ConnectionScreen } from './connection.tsx';
import { CreateConnection } from './connection-form.tsx';

/** The list, or one connection: the address decides. */
export default function Connections() {
  const { name } = useLocation().query;
  return name ? <ConnectionScreen key={name} name={name} /> : <List />;
}

function List() {
  const { data, error, reload } = useQuery('listConnections', {}, { everyMs: 3000 });
  const action = useAction();
  const canAdminister = useCan('admin');
  const [created, setCreated] = useState<Reply<'createConnection'>>();
  const isDone = data?.items.some(({ name, status }) => name === created?.name && status === 'active');
  return (
    <Page title="Connections" command="svc connections list">
      <p>A connection gives plugins access tokens of a provider, which are refreshed before they expire.</p>
      <Notice action={action} />
      {created && <AuthorizeLink link={created} isDone={isDone ?? false} />}
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="connections" />}
      {data?.items.length === 0 && (
        <Empty command="svc connections create hub --provider github --client-id <id>">
          There are no connections. {canAdminister ? 'Create one below, or in a terminal:' : 'Create one:'}
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <DataTable label="Connections" columns={COLUMNS} items={data.items} keyOf={({ name }) => name} />
      )}
      {data && canAdminister && <CreateConnection action={action} onCreated={setCreated} />}
    </Page>
  );
}

const COLUMNS: ReadonlyArray<Column<Connection>> = [
  {
    name: 'Connection',
    value: ({ name }) => <a href={`/studio/connections?${new URLSearchParams({ name })}`}>{name}</a>,
  },
  { name: 'State', value: ({ status }) => <Status value={status} /> },
  { name: 'Provider', value: ({ provider, issuer, tokenUrl }) => provider ?? issuer ?? tokenUrl },
  { name: 'Account', value: ({ account }) => account ?? '–' },
  { name: 'Token expires', value: ({ expiresAt }) => (expiresAt === null ? '–' : <Time ms={expiresAt} />) },
  { name: 'Last error', value: ({ lastError }) => lastError?.message ?? '' },
];
