import { useLocation } from 'preact-iso';
import type { PluginRecord } from '../../../contracts/marketplace.ts';
import { useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Install } from './install.tsx';

export default function Plugins() {
  const { data, error, reload } = useQuery('listPlugins', {}, { everyMs: 10_000 });
  const { query, route } = useLocation();
  const isInstalling = query.install !== undefined;
  return (
    <Page
      title="Plugins"
      command={isInstalling ? 'svc plugins install <source>' : 'svc plugins list'}
      actions={!isInstalling && <a href="/studio/plugins?install=1">Install a plugin</a>}
    >
      {isInstalling && (
        <Section title="Install a plugin" actions={<a href="/studio/plugins">Cancel</a>}>
          <Install onDone={(id) => route(`/studio/plugins/${encodeURIComponent(id)}`)} />
        </Section>
      )}
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="plugins" />}
      {data?.items.length === 0 && (
        <Empty command="svc plugins create">No plugin is installed. Create one:</Empty>
      )}
      {data && data.items.length > 0 && (
        <DataTable label="Plugins" columns={COLUMNS} items={data.items} keyOf={({ id }) => id} />
      )}
    </Page>
  );
}

const COLUMNS: ReadonlyArray<Column<PluginRecord>> = [
  { name: 'State', value: ({ status }) => <Status value={status} /> },
  { name: 'Plugin', value: ({ id }) => <a href={`/studio/plugins/${encodeURIComponent(id)}`}>{id}</a> },
  { name: 'Version', value: ({ version, keptVersion }) => version ?? keptVersion ?? '–' },
  { name: 'Origin', value: ({ origin }) => origin },
  { name: 'Source', value: ({ source }) => source },
  { name: 'Faults', value: ({ faults }) => faults.map(({ message }) => message).join(' ') },
];
