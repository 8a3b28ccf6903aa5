import { useState } from 'preact/hooks';
import type { Secret } from '../../../contracts/secrets.ts';
import { call } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { useCan } from '../../api/role.ts';
import { ConfirmButton } from '../../ui/confirm-button.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { type Readers, useReaders } from './readers.ts';
import { SecretWorkflows } from './secret-workflows.tsx';
import { SetSecret } from './set-secret.tsx';

/** Secrets without their values, which can be set but not read. */
export default function Secrets() {
  const { data, error, reload } = useQuery('listSecrets', {}, { everyMs: 10_000 });
  const action = useAction();
  const canAdminister = useCan('admin');
  const readers = useReaders();
  const [name, setName] = useState('');
  return (
    <Page title="Secrets" command="svc secrets list">
      <p>
        A secret is a value for plugins, adapters and workflows. It is stored encrypted, masked in logs and
        records, and never shown again.
      </p>
      <Notice action={action} />
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="secrets" />}
      {data?.items.length === 0 && (
        <Empty command="svc secrets set SHOP_KEY < key.txt">
          There are no secrets.{' '}
          {canAdminister ? 'Set one below, or in a terminal:' : 'An administrator sets one:'}
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <DataTable
          label="Secrets"
          columns={columns({ action, canAdminister, readers, reload, choose: setName })}
          items={data.items}
          keyOf={(secret) => secret.name}
        />
      )}
      {data && canAdminister && <SetSecret key={name} name={name} action={action} onDone={reload} />}
      <SecretWorkflows workflows={readers.workflows} action={action} canApprove={canAdminister} />
    </Page>
  );
}

interface ColumnsOptions {
  action: Action;
  canAdminister: boolean;
  readers: Readers;
  reload: () => void;
  choose: (name: string) => void;
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 14;

function stateOf({ expiresAt }: Secret): string {
  if (expiresAt === null) return 'active';
  const left = expiresAt - Date.now();
  if (left <= 0) return 'expired';
  return left < SOON_DAYS * DAY_MS ? 'expires soon' : 'active';
}

const columns = (options: ColumnsOptions): ReadonlyArray<Column<Secret>> => [
  { name: 'Secret', value: ({ name }) => <code>{name}</code> },
  { name: 'State', value: (secret) => <Status value={stateOf(secret)} /> },
  { name: 'Expires', value: ({ expiresAt }) => (expiresAt === null ? '–' : <Time ms={expiresAt} />) },
  { name: 'Version', isNumber: true, value: ({ version }) => version },
  { name: 'Set', value: ({ createdAt }) => <Time ms={createdAt} /> },
  { name: 'By', value: ({ createdBy }) => createdBy },
  {
    name: 'Last used',
    value: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : <Time ms={lastUsedAt} />),
  },
  { name: 'May be read by', value: ({ name }) => options.readers.of(name).join(', ') || 'none' },
  ...(options.canAdminister
    ? [{ name: 'Actions', value: ({ name }: Secret) => <Actions {...options} name={name} /> }]
    : []),
];

function Actions({ name, action, reload, choose }: ColumnsOptions & { name: string }) {
  const revoke = async (): Promise<string> => {
    await call('revokeSecret', { params: { name } });
    reload();
    return `${name} is revoked.`;
  };
  return (
    <span class="actions">
      <button type="button" aria-label={`Set a new version of ${name}`} onClick={() => choose(name)}>
        New version
      </button>
      <ConfirmButton
        label="Revoke"
        question={`Revoke ${name} with all its versions? Plugins and workflows that read it fail.`}
        isDisabled={action.isBusy}
        onConfirmed={() => action.run(revoke)}
      />
    </span>
  );
}
