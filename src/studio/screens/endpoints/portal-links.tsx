import { useState } from 'preact/hooks';
import { call, type Input, type Reply } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { Command } from '../../ui/command.tsx';
import { ConfirmButton } from '../../ui/confirm-button.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Field, Select } from '../../ui/field.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Failure } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { useFocusNew } from '../../ui/use-focus-new.ts';
import { textFields, useForm } from '../../ui/use-form.ts';

const DURATIONS = [
  ['3600', '1 hour'],
  ['86400', '1 day'],
  ['604800', '7 days'],
] as const;

type Link = Reply<'listPortalLinks'>['items'][number];

/** Creates and withdraws links with which a customer manages the endpoints of one application. */
export default function PortalLinks() {
  const { data, error, reload } = useQuery('listPortalLinks', { query: {} }, { everyMs: 10_000 });
  const [made, setMade] = useState<Reply<'createPortalLink'>>();
  const action = useAction();
  const form = useForm({ application: '', seconds: '3600' }, action, async ({ application, seconds }) => {
    const body = { application: application.trim(), expiresInSeconds: Number(seconds) };
    setMade(await call('createPortalLink', { body } as Input<'createPortalLink'>));
    outdate('listPortalLinks');
    return '';
  });
  const text = textFields(form, 'portal');
  useFocusNew('link', 'portal-application');
  return (
    <div class="section">
      <p>
        The link opens a page with the endpoints and messages of one application only. Its reader needs no
        account: everyone with the link can use it until it expires.
      </p>
      <form class="schema-form" onSubmit={form.onSubmit}>
        <Field {...text('application')} label="Application of the link" isRequired />
        <Select {...text('seconds')} label="Works for" options={DURATIONS} />
        <div class="actions">
          <button type="submit" class="primary" disabled={action.isBusy}>
            Create link
          </button>
        </div>
      </form>
      <Notice action={action} />
      {made && (
        <p>
          Copy the link now. It is not shown again, and works until <Time ms={made.expiresAt} />:{' '}
          <Command text={made.url} />
        </p>
      )}
      {error && <Failure error={error} onRetry={reload} />}
      {data && data.items.length > 0 && (
        <DataTable
          label="Links that work"
          columns={columns(action)}
          items={data.items}
          keyOf={({ id }) => id}
        />
      )}
    </div>
  );
}

const columns = (action: Action): ReadonlyArray<Column<Link>> => [
  { name: 'Application', value: ({ application }) => application },
  { name: 'By', value: ({ createdBy }) => createdBy },
  { name: 'Created', value: ({ createdAt }) => <Time ms={createdAt} /> },
  { name: 'Expires', value: ({ expiresAt }) => <Time ms={expiresAt} /> },
  {
    name: 'Actions',
    value: ({ id, application }) => (
      <ConfirmButton
        label="Revoke"
        question={`Revoke this link of ${application}? It stops working at once.`}
        isDisabled={action.isBusy}
        onConfirmed={() =>
          action.run(async () => {
            await call('revokePortalLinks', { query: { id } });
            outdate('listPortalLinks');
            return `A link of ${application} is revoked.`;
          })
        }
      />
    ),
  },
];
