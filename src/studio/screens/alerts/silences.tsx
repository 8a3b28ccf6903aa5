import type { AlertSilence } from '../../../contracts/alert-records.ts';
import { call } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import { useCan } from '../../api/role.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { MoreButton } from '../../ui/more-button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { SilenceForm } from './silence-form.tsx';
import { ownerQuery, Views } from './views.tsx';

/** Silences, newest first, and a form for a new one. */
export function Silences() {
  const pages = usePages('listAlertSilences', { limit: 100 } as never);
  const action = useAction();
  const canEdit = useCan('editor');
  return (
    <Page title="Silences" command="svc alerts silences">
      <Views current="silences" />
      <Notice action={action} />
      {pages.error && <Failure error={pages.error} onRetry={pages.reload} />}
      {!pages.error &&
        pages.items.length === 0 &&
        (pages.isLoading ? (
          <Loading what="silences" />
        ) : (
          <Empty command="svc alerts silence --rule <rule> --for 1h">
            There are no silences. A silence keeps alerts from being sent, for example during maintenance:
          </Empty>
        ))}
      {pages.items.length > 0 && (
        <DataTable
          label="Silences"
          columns={columns(action, canEdit, pages.reload)}
          items={pages.items}
          keyOf={({ id }) => id}
        />
      )}
      <MoreButton pages={pages} />
      {canEdit && (
        <Section title="Silence alerts">
          <SilenceForm action={action} onDone={pages.reload} />
        </Section>
      )}
    </Page>
  );
}

const columns = (
  action: Action,
  canEdit: boolean,
  reload: () => void,
): ReadonlyArray<Column<AlertSilence>> => [
  {
    name: 'Silences',
    value: ({ matcher: { kind, rule, object } }) =>
      [kind, rule && `rule ${rule}`, object && `object ${object}`].filter(Boolean).join(', '),
  },
  { name: 'State', value: ({ active }) => <Status value={active ? 'active' : 'ended'} /> },
  { name: 'Until', value: ({ until }) => <Time ms={until} /> },
  { name: 'Comment', value: ({ comment }) => comment ?? '' },
  { name: 'By', value: ({ createdBy }) => createdBy },
  ...(canEdit
    ? [
        {
          name: 'Actions',
          value: (silence: AlertSilence) => (
            <button
              type="button"
              disabled={!silence.active || action.isBusy}
              onClick={() =>
                action.run(async () => {
                  await call('deleteAlertSilence', { params: { id: silence.id }, ...ownerQuery(silence) });
                  reload();
                  return 'The silence has ended. Alerts that still fire are sent.';
                })
              }
            >
              End
            </button>
          ),
        },
      ]
    : []),
];
