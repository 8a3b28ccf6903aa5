import { useState } from 'preact/hooks';
import type { AlertChannel } from '../../../contracts/alert-records.ts';
import { call, type Input } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import { outdate } from '../../api/query.ts';
import { useCan } from '../../api/role.ts';
import { Command } from '../../ui/command.tsx';
import { ConfirmButton } from '../../ui/confirm-button.tsx';
import type { Column } from '../../ui/data-table.tsx';
import { durationText } from '../../ui/duration-text.ts';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { useFocusNew } from '../../ui/use-focus-new.ts';
import { useForm } from '../../ui/use-form.ts';
import { useRefresh } from '../../ui/use-refresh.ts';
import { ChannelForm, NEW_CHANNEL, settingsOf, valuesOf } from './channel-form.tsx';
import { newQuery, ownerQuery, ownerText, Views } from './views.tsx';

const PAGE = 100;

/** Channels of alerts. Those of the config are shown, and others can be changed. */
export function Channels() {
  const pages = usePages('listAlertChannels', { limit: PAGE } as never);
  useRefresh(pages, { keyOf, pageSize: PAGE, everyMs: 5000 });
  const action = useAction();
  const canAdminister = useCan('admin');
  const canTest = useCan('editor');
  const [edited, setEdited] = useState<AlertChannel>();
  const [secret, setSecret] = useState<string>();
  const done = (generated?: string | null): void => {
    setSecret(generated ?? undefined);
    setEdited(undefined);
    outdate('listAlertChannels');
    pages.reload();
  };
  return (
    <Page title="Channels" command="svc alerts channels">
      <Views current="channels" />
      <Notice action={action} />
      {secret && (
        <p>
          Copy the secret of the channel now. It is not shown again: <Command text={secret} />
        </p>
      )}
      <PagedTable
        label="Channels"
        pages={pages}
        columns={columns({ action, canTest, canAdminister, reload: done, edit: setEdited })}
        keyOf={keyOf}
        empty={
          <Empty>
            There are no channels. {canAdminister ? 'Create one below, or declare' : 'Declare'} them under{' '}
            <code>alerts.channels</code> in svc.config.json.
          </Empty>
        }
      />
      {canAdminister &&
        (edited ? (
          <EditChannel key={keyOf(edited)} channel={edited} action={action} onDone={done} />
        ) : (
          <CreateChannel action={action} onDone={done} />
        ))}
    </Page>
  );
}

const keyOf = ({ namespaceId, name }: AlertChannel): string => `${namespaceId} ${name}`;

interface FormProps {
  action: Action;
  onDone: (secret?: string | null) => void;
}

function CreateChannel({ action, onDone }: FormProps) {
  const form = useForm(NEW_CHANNEL, action, async (values) => {
    const body = { name: values.name, type: values.type, ...settingsOf(values) };
    const { secret } = await call('createAlertChannel', {
      ...newQuery(values.isForAll),
      body,
    } as Input<'createAlertChannel'>);
    form.reset();
    onDone(secret);
    return `The channel ${values.name} is created. Test it next.`;
  });
  useFocusNew('channel', 'channel-name');
  return (
    <Section title="Create a channel">
      <ChannelForm form={form} isNew>
        <button type="submit" class="primary" disabled={action.isBusy}>
          Create channel
        </button>
      </ChannelForm>
    </Section>
  );
}

function EditChannel({ channel, action, onDone }: FormProps & { channel: AlertChannel }) {
  const { name } = channel;
  const form = useForm(valuesOf(channel), action, async (values) => {
    const input = { params: { name }, ...ownerQuery(channel), body: settingsOf(values) };
    await call('updateAlertChannel', input as Input<'updateAlertChannel'>);
    onDone();
    return `The channel ${name} is changed.`;
  });
  return (
    <Section title={`Edit ${name}`}>
      <ChannelForm form={form} isNew={false}>
        <button type="submit" class="primary" disabled={action.isBusy}>
          Save
        </button>
        <button type="button" onClick={() => onDone()}>
          Discard
        </button>
      </ChannelForm>
    </Section>
  );
}

interface ColumnsOptions {
  action: Action;
  canTest: boolean;
  canAdminister: boolean;
  reload: () => void;
  edit: (channel: AlertChannel) => void;
}

const columns = (options: ColumnsOptions): ReadonlyArray<Column<AlertChannel>> => [
  { name: 'Channel', value: ({ name }) => name },
  { name: 'Type', value: ({ type }) => type },
  {
    name: 'State',
    value: ({ failing, lastSuccessAt }) => (
      <Status value={failing ? 'failing' : lastSuccessAt === null ? 'not used yet' : 'active'} />
    ),
  },
  { name: 'To', value: ({ target }) => target },
  { name: 'Belongs to', value: ownerText },
  { name: 'Waiting', isNumber: true, value: ({ pending }) => pending },
  { name: 'Last success', value: ({ lastSuccessAt }) => (lastSuccessAt ? <Time ms={lastSuccessAt} /> : '–') },
  { name: 'Last error', value: ({ failing, lastError }) => (failing ? lastError : '') },
  ...(options.canTest
    ? [{ name: 'Actions', value: (channel: AlertChannel) => <Actions {...options} channel={channel} /> }]
    : []),
];

function Actions({
  channel,
  action,
  canAdminister,
  reload,
  edit,
}: ColumnsOptions & { channel: AlertChannel }) {
  const { name, declared } = channel;
  const test = async (): Promise<string> => {
    const { results } = await call('testAlerts', { ...ownerQuery(channel), body: { channel: name } });
    const [result] = results;
    const status = result?.status ? ` (status ${result.status})` : '';
    if (!result?.ok) throw new Error(`The test of ${name} failed${status}: ${result?.error ?? 'no answer'}`);
    return `The test reached ${name} after ${durationText(result.durationMs)}${status}.`;
  };
  const remove = async (): Promise<string> => {
    await call('deleteAlertChannel', { params: { name }, ...ownerQuery(channel) });
    reload();
    return `The channel ${name} is deleted.`;
  };
  return (
    <span class="actions">
      <button
        type="button"
        aria-label={`Test ${name}`}
        disabled={action.isBusy}
        onClick={() => action.run(test)}
      >
        Test
      </button>
      {canAdminister && !declared && (
        <>
          <button type="button" aria-label={`Edit ${name}`} onClick={() => edit(channel)}>
            Edit
          </button>
          <ConfirmButton
            label="Delete"
            question={`Delete the channel ${name}?`}
            isDisabled={action.isBusy}
            onConfirmed={() => action.run(remove)}
          />
        </>
      )}
    </span>
  );
}
