import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { Source } from '../../../contracts/sources.ts';
import { call } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { CreateSource } from './create-source.tsx';
import { NewSourceSecret, type ShownSecret } from './new-source-secret.tsx';
import { SourceScreen } from './source.tsx';

/** The list, or one source: the address decides. */
export default function Sources() {
  const { name } = useLocation().query;
  return name ? <SourceScreen key={name} name={name} /> : <List />;
}

function List() {
  const { data, error, reload } = useQuery('listSources', { query: { limit: 500 } }, { everyMs: 10_000 });
  const action = useAction();
  const [secret, setSecret] = useState<ShownSecret>();
  return (
    <Page title="Sources" command="svc sources list">
      <p>A source is a URL that takes webhooks without a plugin and hands them over to destinations.</p>
      <Notice action={action} />
      {secret && <NewSourceSecret shown={secret} />}
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="sources" />}
      {data?.items.length === 0 && (
        <Empty command="svc sources create payments --provider stripe">
          There are no sources. Create one below, or in a terminal:
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <DataTable label="Sources" columns={columns(action)} items={data.items} keyOf={({ name }) => name} />
      )}
      {data && <CreateSource action={action} onCreated={setSecret} />}
    </Page>
  );
}

const columns = (action: Action): ReadonlyArray<Column<Source>> => [
  {
    name: 'Source',
    value: ({ name }) => <a href={`/studio/sources?${new URLSearchParams({ name })}`}>{name}</a>,
  },
  { name: 'State', value: (source) => <Status value={stateOf(source)} /> },
  { name: 'Sender', value: ({ provider, auth }) => provider ?? auth },
  { name: 'Destinations', isNumber: true, value: ({ destinations }) => destinations.length },
  { name: 'URL', value: ({ url }) => <code>{url}</code> },
  {
    name: 'Actions',
    value: ({ name, paused }) => {
      const toggle = async (): Promise<string> => {
        const params = { name: name as never };
        await call(paused ? 'resumeSource' : 'pauseSource', { params, body: {} });
        outdate('listSources');
        return paused ? `${name} hands over again.` : `${name} holds its deliveries.`;
      };
      return (
        <button type="button" disabled={action.isBusy} onClick={() => action.run(toggle)}>
          {paused ? 'Resume' : 'Pause'}
        </button>
      );
    },
  },
];

function stateOf({ paused, provisioned }: Source): string {
  if (paused) return 'paused';
  return provisioned ? 'ready' : 'no secret';
}
