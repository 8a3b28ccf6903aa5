import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { AlertRule } from '../../../contracts/alert-records.ts';
import { call, type Input } from '../../api/call.ts';
import { usePages } from '../../api/pages.ts';
import { useCan } from '../../api/role.ts';
import { ConfirmButton } from '../../ui/confirm-button.tsx';
import type { Column } from '../../ui/data-table.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { useFocusNew } from '../../ui/use-focus-new.ts';
import { useForm } from '../../ui/use-form.ts';
import { RuleForm } from './rule-form.tsx';
import { NEW_RULE, settingsOf, valuesOf } from './rule-values.ts';
import { newQuery, ownerQuery, ownerText, Views } from './views.tsx';

/** Rules of alerts. Those of the config are shown, and others can be changed. */
export function Rules() {
  const pages = usePages('listAlertRules', { limit: 100 } as never);
  const action = useAction();
  const canEdit = useCan('editor');
  const [edited, setEdited] = useState<AlertRule>();
  const reload = (): void => {
    setEdited(undefined);
    pages.reload();
  };
  return (
    <Page title="Rules" command="svc alerts rules">
      <Views current="rules" />
      <p>A rule says what alerts, and which channels are told.</p>
      <Notice action={action} />
      <PagedTable
        label="Rules"
        pages={pages}
        columns={columns({ action, canEdit, reload, edit: setEdited })}
        keyOf={keyOf}
        empty={
          <Empty>
            There are no rules. {canEdit ? 'Create one below, or declare' : 'Declare'} them under{' '}
            <code>alerts.rules</code> in svc.config.json.
          </Empty>
        }
      />
      {canEdit &&
        (edited ? (
          <EditRule key={keyOf(edited)} rule={edited} action={action} onDone={reload} />
        ) : (
          <CreateRule action={action} onDone={reload} />
        ))}
    </Page>
  );
}

const keyOf = ({ namespaceId, name }: AlertRule): string => `${namespaceId} ${name}`;

interface FormProps {
  action: Action;
  onDone: () => void;
}

function CreateRule({ action, onDone }: FormProps) {
  const { query } = useLocation();
  const form = useForm({ ...NEW_RULE, name: query.name ?? '' }, action, async (values) => {
    const body = { name: values.name, kind: values.kind, ...settingsOf(values) };
    await call('createAlertRule', { ...newQuery(values.isForAll), body } as Input<'createAlertRule'>);
    form.reset();
    onDone();
    return `The rule ${values.name} is created.`;
  });
  useFocusNew('rule', 'rule-name');
  return (
    <Section title="Create a rule">
      <RuleForm form={form} isNew>
        <button type="submit" class="primary" disabled={action.isBusy}>
          Create rule
        </button>
      </RuleForm>
    </Section>
  );
}

function EditRule({ rule, action, onDone }: FormProps & { rule: AlertRule }) {
  const form = useForm(valuesOf(rule), action, async (values) => {
    const input = { params: { name: rule.name }, ...ownerQuery(rule), body: settingsOf(values) };
    await call('updateAlertRule', input as Input<'updateAlertRule'>);
    onDone();
    return `The rule ${rule.name} is changed.`;
  });
  return (
    <Section title={`Edit ${rule.name}`}>
      <RuleForm form={form} isNew={false}>
        <button type="submit" class="primary" disabled={action.isBusy}>
          Save
        </button>
        <button type="button" onClick={onDone}>
          Discard
        </button>
      </RuleForm>
    </Section>
  );
}

interface ColumnsOptions {
  action: Action;
  canEdit: boolean;
  reload: () => void;
  edit: (rule: AlertRule) => void;
}

const columns = ({ action, canEdit, reload, edit }: ColumnsOptions): ReadonlyArray<Column<AlertRule>> => [
  { name: 'Rule', value: ({ name }) => name },
  { name: 'State', value: ({ enabled }) => <Status value={enabled ? 'active' : 'disabled'} /> },
  { name: 'Alerts when', value: ({ kind }) => kind },
  { name: 'Channels', value: ({ channels }) => channels.join(', ') || 'none' },
  { name: 'Severity', value: ({ severity }) => severity },
  {
    name: 'Firing',
    isNumber: true,
    value: ({ firing, name }) => (
      <a href={`/studio/alerts?${new URLSearchParams({ state: 'firing', rule: name })}`}>{firing}</a>
    ),
  },
  { name: 'Belongs to', value: ownerText },
  {
    name: 'Faults',
    value: ({ faults }) => (faults.length === 0 ? '–' : <span class="error">{faults.join('; ')}</span>),
  },
  ...(canEdit
    ? [
        {
          name: 'Actions',
          value: (rule: AlertRule) =>
            rule.declared ? (
              'in the config'
            ) : (
              <span class="actions">
                <button type="button" aria-label={`Edit ${rule.name}`} onClick={() => edit(rule)}>
                  Edit
                </button>
                <ConfirmButton
                  label="Delete"
                  question={`Delete the rule ${rule.name}? Its alerts end without a message.`}
                  isDisabled={action.isBusy}
                  onConfirmed={() =>
                    action.run(async () => {
                      await call('deleteAlertRule', { params: { name: rule.name }, ...ownerQuery(rule) });
                      reload();
                      return `The rule ${rule.name} is deleted.`;
                    })
                  }
                />
              </span>
            ),
        },
      ]
    : []),
];
