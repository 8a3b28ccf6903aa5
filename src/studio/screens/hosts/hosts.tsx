import type { Host } from '../../../contracts/hosts.ts';
import { call } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import type { Column } from '../../ui/data-table.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';

export default function Hosts() {
  const pages = usePages('listHosts', { limit: 100 });
  const action = useAction();
  return (
    <Page title="Hosts" command="svc hosts list">
      <Notice action={action} />
      <PagedTable
        label="Hosts"
        pages={pages}
        columns={columns(action, pages.reload)}
        keyOf={({ hostId }) => hostId}
        empty={<None />}
      />
    </Page>
  );
}

function None() {
  return (
    <Empty command="svc hosts invite">
      No host is registered. A host runs plugins on another machine, also behind NAT. Invite one:
    </Empty>
  );
}

const columns = (action: Action, reload: () => void): ReadonlyArray<Column<Host>> => [
  { name: 'State', value: ({ status }) => <Status value={status} /> },
  { name: 'Name', value: ({ name }) => name },
  { name: 'Id', value: ({ hostId }) => <code>{hostId}</code> },
  { name: 'Capabilities', value: ({ capabilities }) => capabilities.join(', ') },
  {
    name: 'Last seen',
    value: ({ lastSeenAt }) => (lastSeenAt === null ? 'never' : <Time ms={lastSeenAt} />),
  },
  {
    name: 'Actions',
    value: ({ hostId, name, status }) => (
      <button
        type="button"
        disabled={status === 'revoked' || action.isBusy}
        onClick={() => {
          if (
            !confirm(
              `Revoke the host ${name}? Its tokens stop working at once, and it must be registered again.`,
            )
          )
            return;
          action.run(async () => {
            await call('revokeHost', { params: { hostId } });
            reload();
            return `The host ${name} is revoked.`;
          });
        }}
      >
        Revoke
      </button>
    ),
  },
];
