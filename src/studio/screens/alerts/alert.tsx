import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { AlertDetails, AlertNotification } from '../../../contracts/alert-records.ts';
import { call } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { useCan } from '../../api/role.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { durationText } from '../../ui/duration-text.ts';
import { Facts } from '../../ui/facts.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { SilenceForm } from './silence-form.tsx';

export default function AlertPage() {
  const id = useRoute().params.id!;
  const { data, error, reload } = useQuery('getAlert', { params: { id } }, { everyMs: 3000 });
  const action = useAction();
  const canEdit = useCan('editor');
  const [isSilencing, setSilencing] = useState(false);
  const silence = (): void => setSilencing(!isSilencing);
  return (
    <Page
      title={data ? data.title : 'Alert'}
      command={`svc alerts show ${id}`}
      actions={data && canEdit && <Actions {...{ alert: data, action, reload, onSilence: silence }} />}
    >
      <Notice action={action} />
      {isSilencing && data && (
        <Section title="Silence">
          <SilenceForm
            first={{ rule: data.rule, object: data.object.id }}
            owner={data}
            action={action}
            onDone={() => {
              setSilencing(false);
              reload();
            }}
          />
        </Section>
      )}
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the alert" />}
      {data && <Details alert={data} />}
    </Page>
  );
}

interface ActionsProps {
  alert: AlertDetails;
  action: Action;
  reload: () => void;
  onSilence: () => void;
}

function Actions({ alert: { id, state, acknowledgedAt }, action, reload, onSilence }: ActionsProps) {
  const change = (endpoint: 'acknowledgeAlert' | 'resolveAlert', done: string) => () =>
    action.run(async () => {
      await call(endpoint, { params: { id } });
      outdate('listAlerts');
      reload();
      return done;
    });
  const isOpen = state !== 'resolved';
  return (
    <>
      <button
        type="button"
        class="primary"
        disabled={action.isBusy || !isOpen || acknowledgedAt !== null}
        onClick={change('acknowledgeAlert', 'The alert is acknowledged. It is not sent again.')}
      >
        Acknowledge
      </button>
      <button
        type="button"
        disabled={action.isBusy || !isOpen}
        onClick={change('resolveAlert', 'The alert is resolved.')}
      >
        Resolve
      </button>
      <button type="button" onClick={onSilence}>
        Silence…
      </button>
    </>
  );
}

const time = (ms: number | null) => (ms === null ? null : <Time ms={ms} />);

function Details({ alert }: { alert: AlertDetails }) {
  const { state, severity, message, object, link, notifications } = alert;
  const labels = Object.entries(object.labels).map(([name, value]) => `${name} ${value}`);
  return (
    <>
      <p class="verdict">
        <Status value={state} /> {severity}
      </p>
      <p>{message}</p>
      <Facts
        facts={[
          ['About', link === null ? `${object.type} ${object.id}` : <ObjectLink key="about" alert={alert} />],
          ['Rule', alert.rule],
          ['Kind', alert.kind],
          ['Namespace', object.namespaceId ?? 'the platform'],
          ['Labels', labels.length === 0 ? null : labels.join(', ')],
          ['Times', alert.count],
          ['First', time(alert.firstAt)],
          ['Last', time(alert.lastAt)],
          ['Resolved', time(alert.resolvedAt)],
          ['Acknowledged', time(alert.acknowledgedAt)],
          ['Acknowledged by', alert.acknowledgedBy],
          ['Silence', alert.silenceId],
        ]}
      />
      <Section title="Notifications">
        {notifications.length === 0 ? (
          <Empty>None. The rule has no channel, it still groups alerts, or a silence applies.</Empty>
        ) : (
          <DataTable label="Notifications" columns={COLUMNS} items={notifications} keyOf={({ id }) => id} />
        )}
      </Section>
    </>
  );
}

/** Link to the object within the studio. The gateway's public URL can be another one than that of this page. */
function ObjectLink({ alert: { link, object } }: { alert: AlertDetails }) {
  const { pathname, search } = new URL(link!, location.href);
  return <a href={pathname + search}>{`${object.type} ${object.id}`}</a>;
}

const COLUMNS: ReadonlyArray<Column<AlertNotification>> = [
  { name: 'Channel', value: ({ channel }) => channel },
  { name: 'Reason', value: ({ reason }) => reason },
  { name: 'Status', value: ({ status }) => <Status value={status} /> },
  { name: 'Created', value: ({ createdAt }) => <Time ms={createdAt} /> },
  { name: 'Sent', value: ({ sentAt }) => time(sentAt) ?? '–' },
  { name: 'Next attempt', value: ({ nextAttemptAt }) => time(nextAttemptAt) ?? '–' },
  { name: 'Alerts', isNumber: true, value: ({ alerts }) => alerts },
  {
    name: 'Attempts',
    value: ({ attempts }) => (
      <ul class="sentences">
        {attempts.map(({ at, ok, status, error, durationMs }) => (
          <li key={at}>
            <Time ms={at} />: {ok ? 'accepted' : 'failed'} after {durationText(durationMs)}
            {status !== null && `, status ${status}`}
            {error && `, ${error}`}
          </li>
        ))}
      </ul>
    ),
  },
];
