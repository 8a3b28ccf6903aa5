import type { ComponentChildren } from 'preact';
import type { AlertKind } from '../../../contracts/alert-kinds.ts';
import { useQuery } from '../../api/query.ts';
import { CheckField, Field, FormIssue, issueOf, Select } from '../../ui/field.tsx';
import { type Form, textFields } from '../../ui/use-form.ts';
import { KIND_NAMES, KINDS, THRESHOLDS } from './kinds.ts';
import type { RuleValues } from './rule-values.ts';
import { ForAllField } from './views.tsx';

const SEVERITIES = ['info', 'warning', 'critical'].map((name) => [name, name] as const);

interface RuleFormProps {
  form: Form<RuleValues>;
  isNew: boolean;
  /** Buttons. */
  children: ComponentChildren;
}

/** Form of a rule: what it observes, and which channels it tells. */
export function RuleForm({ form, isNew, children }: RuleFormProps) {
  const { values, issues, set } = form;
  const text = textFields(form, 'rule');
  const kinds = KIND_NAMES.map((kind) => [kind, `${kind}: ${KINDS[kind].text}`] as const);
  return (
    <form class="schema-form" onSubmit={form.onSubmit}>
      {isNew && (
        <>
          <Field {...text('name')} label="Name of the rule" isRequired maxLength={64} />
          <Select
            id="rule-kind"
            label="Alert when"
            value={values.kind}
            options={kinds}
            onInput={(kind) => set({ kind: kind as AlertKind, match: {}, threshold: {} })}
          />
          <ForAllField id="rule-all" isChecked={values.isForAll} onChange={(isForAll) => set({ isForAll })} />
        </>
      )}
      <Conditions form={form} />
      <ChannelChoice form={form} />
      <Select {...text('severity')} label="Severity" options={SEVERITIES} />
      <Sending form={form} />
      <FormIssue issues={issues} />
      <div class="actions">{children}</div>
    </form>
  );
}

/** Thresholds of the kind, and the objects that the rule is restricted to. */
function Conditions({ form }: Pick<RuleFormProps, 'form'>) {
  const { values, issues, set } = form;
  const { match, threshold } = KINDS[values.kind];
  return (
    <>
      {threshold.map((name) =>
        name === 'certificates' ? (
          <Field
            key={name}
            {...textFields(form, 'rule')('certificates', 'threshold')}
            label="Certificates"
            isRequired
            hint="PEM files on the gateway, or https URLs; several with commas."
          />
        ) : (
          <Field
            key={name}
            id={`rule-${name}`}
            label={THRESHOLDS[name].label}
            type="number"
            min={0}
            value={values.threshold[name] ?? ''}
            onInput={(text) => set({ threshold: { ...values.threshold, [name]: text } })}
            issue={issueOf(issues, 'threshold')}
            isOptional
          />
        ),
      )}
      {match.length > 0 && (
        <fieldset class="field">
          <legend>Only for (optional; * stands for any characters)</legend>
          <div class="filters">
            {match.map((name) => (
              <Field
                key={name}
                id={`rule-match-${name}`}
                label={name}
                value={values.match[name] ?? ''}
                onInput={(text) => set({ match: { ...values.match, [name]: text } })}
              />
            ))}
          </div>
        </fieldset>
      )}
    </>
  );
}

function ChannelChoice({ form: { values, issues, set } }: Pick<RuleFormProps, 'form'>) {
  const { data } = useQuery('listAlertChannels', { query: { limit: 500 } });
  const { channels } = values;
  // A rule can name a channel that no longer exists.
  const names = [...new Set([...(data?.items ?? []).map(({ name }) => name), ...channels])];
  const toggle = (name: string): void =>
    set({
      channels: channels.includes(name) ? channels.filter((each) => each !== name) : [...channels, name],
    });
  return (
    <fieldset class="field">
      <legend>Channels</legend>
      {names.length === 0 && <p class="hint">There are none. Without a channel, alerts are only recorded.</p>}
      <div class="choices">
        {names.map((name) => (
          <label key={name} for={`rule-channel-${name}`}>
            <input
              id={`rule-channel-${name}`}
              type="checkbox"
              checked={channels.includes(name)}
              onChange={() => toggle(name)}
            />
            {name}
          </label>
        ))}
      </div>
      {issueOf(issues, 'channels') && <span class="error">{issueOf(issues, 'channels')}</span>}
    </fieldset>
  );
}

function Sending({ form }: Pick<RuleFormProps, 'form'>) {
  const { values, set } = form;
  const text = textFields(form, 'rule');
  return (
    <>
      <Field {...text('description')} label="Description of the rule" isOptional maxLength={500} />
      <Field
        {...text('groupBy')}
        label="Group by"
        isOptional
        hint="Fields such as object, workflow or endpoint. Alerts with equal ones share a notification."
      />
      <Field
        {...text('groupWaitSeconds', 'groupWaitMs')}
        label="Seconds until the first notification"
        type="number"
        min={0}
      />
      <Field
        {...text('repeatHours', 'repeatIntervalMs')}
        label="Hours until it is sent again"
        type="number"
        min={0}
        isOptional
        hint="Empty: never."
      />
      <CheckField
        id="rule-resolved"
        label="Also send the end of alerts"
        isChecked={values.sendsResolved}
        onChange={(sendsResolved) => set({ sendsResolved })}
      />
      <CheckField
        id="rule-enabled"
        label="Enabled"
        isChecked={values.isEnabled}
        onChange={(isEnabled) => set({ isEnabled })}
      />
    </>
  );
}
