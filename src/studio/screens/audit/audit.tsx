import type { AuditEntry } from '../../../contracts/audit.ts';
import { call } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Filters, useFilters } from '../../ui/filters.tsx';
import { MoreButton } from '../../ui/more-button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { useAction } from '../../ui/use-action.ts';

const FILTERS = [
  { name: 'actor', label: 'Actor', placeholder: 'host id' },
  { name: 'action', label: 'Action', placeholder: 'webhook.provision, webhook.' },
  { name: 'object', label: 'Object' },
] as const;
const NAMES = FILTERS.map(({ name }) => name);

export default function Audit() {
  const [filters, change] = useFilters(NAMES);
  const pages = usePages('listAudit', { ...filters, limit: 100 } as never);
  const action = useAction();
  const verify = async (): Promise<string> => {
    const { intact, entries, fault } = await call('verifyAudit', {});
    if (!intact) throw new Error(fault?.message ?? 'The audit log was changed.');
    return `The hashes of all ${entries} entries are correct.`;
  };
  return (
    <Page
      title="Audit log"
      command="svc audit list"
      actions={
        <button type="button" disabled={action.isBusy} onClick={() => action.run(verify)}>
          Verify
        </button>
      }
    >
      <Filters filters={FILTERS} values={filters} onChange={change} />
      <Notice action={action} />
      {pages.error && <Failure error={pages.error} onRetry={pages.reload} />}
      {pages.items.length === 0 &&
        !pages.error &&
        (pages.isLoading ? <Loading what="the audit log" /> : <None />)}
      {pages.items.length > 0 && (
        <DataTable
          label="Changes"
          columns={COLUMNS}
          items={pages.items}
          keyOf={({ sequence }) => String(sequence)}
        />
      )}
      <MoreButton pages={pages} />
    </Page>
  );
}

function None() {
  return <Empty>No change matches. Changes of secrets, tokens, plugins, roles and runs appear here.</Empty>;
}

const COLUMNS: ReadonlyArray<Column<AuditEntry>> = [
  { name: 'When', value: ({ at }) => <Time ms={at} /> },
  { name: 'Actor', value: ({ actor, role }) => (role === null ? actor : `${actor} (${role})`) },
  { name: 'Action', value: ({ action }) => action },
  { name: 'Object', value: ({ object }) => <code>{object}</code> },
  { name: 'Namespace', value: ({ namespaceId }) => namespaceId },
  { name: 'Outcome', value: ({ outcome, status }) => `${outcome} (${status})` },
];
