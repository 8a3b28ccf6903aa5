import type { AlertSilence } from '../../../contracts/alert-records.ts';
import { call } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import { useCan } from '../../api/role.ts';
import type { Column } from '../../ui/data-table.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states.tsx';
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
      <PagedTable
        label="Silences"
        pages={pages}
        columns={columns(action, canEdit, pages.reload)}
        keyOf={({ id }) => id}
        empty={
          <Empty command="svc alerts silence --rule <rule> --for 1h">
            There are no silences. A silence keeps alerts from being sent, for example during maintenance:
          </Empty>
        }
      />
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
