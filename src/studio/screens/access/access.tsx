import { useState } from 'preact/hooks';
import type { RoleGrant } from '../../../contracts/access.ts';
import type { Client } from '../../../contracts/clients.ts';
import type { MintedToken } from '../../../contracts/tokens.ts';
import { call, type Reply } from '../../api/call.ts';
import { type Pages, usePages } from '../../api/pages.ts';
import { Command } from '../../ui/command.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { MoreButton } from '../../ui/more-button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';

const LIMIT = 100;

export default function Access() {
  const action = useAction();
  const clients = usePages('listClients', { limit: LIMIT });
  const tokens = usePages('listTokens', { limit: LIMIT });
  const roles = usePages('listRoles', { limit: LIMIT });
  return (
    <Page title="Access" command="svc clients list">
      <Notice action={action} />
      <NewClient action={action} onCreated={clients.reload} />
      <List
        title="Clients"
        pages={clients}
        columns={clientColumns(action, clients.reload)}
        keyOf={({ clientId }) => clientId}
      />
      <List
        title="Tokens and sessions"
        pages={tokens}
        columns={tokenColumns(action, tokens.reload)}
        keyOf={({ jti }) => jti}
      />
      <List
        title="Roles"
        pages={roles}
        columns={ROLE_COLUMNS}
        keyOf={({ subject, namespaceId }) => `${subject} ${namespaceId}`}
      />
    </Page>
  );
}

interface ListProps<T> {
  title: string;
  pages: Pages<T>;
  columns: ReadonlyArray<Column<T>>;
  keyOf: (item: T) => string;
}

function List<T>({ title, pages, columns, keyOf }: ListProps<T>) {
  return (
    <Section title={title}>
      {pages.error && <Failure error={pages.error} onRetry={pages.reload} />}
      {pages.items.length === 0 &&
        !pages.error &&
        (pages.isLoading ? <Loading what={title.toLowerCase()} /> : <Empty>There are none.</Empty>)}
      {pages.items.length > 0 && (
        <DataTable label={title} columns={columns} items={pages.items} keyOf={keyOf} />
      )}
      <MoreButton pages={pages} />
    </Section>
  );
}

/** Form that creates a client. Its secret is shown once. */
function NewClient({ action, onCreated }: { action: Action; onCreated: () => void }) {
  const [name, setName] = useState('');
  const [created, setCreated] = useState<Reply<'createClientCredentials'>>();
  const create = (event: Event): void => {
    event.preventDefault();
    action.run(async () => {
      const reply = await call('createClientCredentials', { body: { name: name as never } });
      setCreated(reply);
      setName('');
      onCreated();
      return `The client ${reply.clientId} was created.`;
    });
  };
  return (
    <form class="actions" onSubmit={create}>
      <label for="client-name">Name of a new client</label>
      <input id="client-name" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      <button type="submit" disabled={name.trim() === '' || action.isBusy}>
        Create
      </button>
      {created && (
        <p>
          Copy the secret now. It is not shown again: <Command text={created.clientSecret} />
        </p>
      )}
    </form>
  );
}

const clientColumns = (action: Action, reload: () => void): ReadonlyArray<Column<Client>> => [
  { name: 'Name', value: ({ name }) => name },
  { name: 'Client id', value: ({ clientId }) => <code>{clientId}</code> },
  { name: 'Namespace', value: ({ namespaceId }) => namespaceId },
  { name: 'State', value: ({ valid }) => <Status value={valid ? 'active' : 'revoked'} /> },
  { name: 'Created', value: ({ createdAt }) => <Time ms={createdAt} /> },
  {
    name: 'Actions',
    value: ({ clientId, name, valid }) => (
      <RevokeButton
        what={`the client ${name}`}
        isDisabled={!valid || action.isBusy}
        onConfirmed={() =>
          action.run(async () => {
            await call('revokeClient', { params: { clientId } });
            reload();
            return `The client ${name} is revoked.`;
          })
        }
      />
    ),
  },
];

const tokenColumns = (action: Action, reload: () => void): ReadonlyArray<Column<MintedToken>> => [
  { name: 'Kind', value: ({ jti }) => (jti.startsWith('studio_') ? 'session' : 'token') },
  { name: 'Host id', value: ({ hostId }) => hostId },
  { name: 'Namespace', value: ({ namespaceId }) => namespaceId },
  { name: 'Created', value: ({ createdAt }) => <Time ms={createdAt} /> },
  { name: 'Expires', value: ({ expiresAt }) => <Time ms={expiresAt} /> },
  {
    name: 'Actions',
    value: ({ jti, hostId, revokedAt }) => (
      <RevokeButton
        what={`this token of ${hostId}`}
        isDisabled={revokedAt !== null || action.isBusy}
        onConfirmed={() =>
          action.run(async () => {
            await call('revokeToken', { params: { jti } });
            reload();
            return `A token of ${hostId} is revoked.`;
          })
        }
      />
    ),
  },
];

const ROLE_COLUMNS: ReadonlyArray<Column<RoleGrant>> = [
  { name: 'Subject', value: ({ subject }) => <code>{subject}</code> },
  { name: 'Namespace', value: ({ namespaceId }) => (namespaceId === '*' ? 'all' : namespaceId) },
  { name: 'Role', value: ({ role }) => role },
  { name: 'Given by', value: ({ grantedBy }) => grantedBy },
  { name: 'Given', value: ({ grantedAt }) => <Time ms={grantedAt} /> },
];

interface RevokeButtonProps {
  what: string;
  isDisabled: boolean;
  onConfirmed: () => void;
}

function RevokeButton({ what, isDisabled, onConfirmed }: RevokeButtonProps) {
  const ask = (): void => {
    if (confirm(`Revoke ${what}? It stops working at once.`)) onConfirmed();
  };
  return (
    <button type="button" disabled={isDisabled} onClick={ask}>
      Revoke
    </button>
  );
}
