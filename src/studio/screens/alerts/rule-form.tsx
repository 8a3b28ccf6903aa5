import type { ComponentChildren } from 'preact';
import type { AlertKind } from '../../../contracts/alert-kinds.ts';
import { useQuery } from '../../api/query.ts';
import { CheckField, Field, issueOf, Select } from '../../ui/field.tsx';
import type { Form } from '../../ui/use-form.ts';
import { KIND_NAMES, KINDS, THRESHOLDS } from './kinds.ts';
import type { RuleValues } from './rule-values.ts';

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
  const kinds = KIND_NAMES.map((kind) => [kind, `${kind}: ${KINDS[kind].text}`] as const);
  return (
    <form class="schema-form" onSubmit={form.onSubmit}>
      {isNew && (
        <>
          <Field
            id="rule-name"
            label="Name of the rule"
            value={values.name}
            onInput={(name) => set({ name })}
            issue={issueOf(issues, 'name')}
            isRequired
            maxLength={64}
          />
          <Select
            id="rule-kind"
            label="Alert when"
            value={values.kind}
            options={kinds}
            onChange={(kind) => set({ kind: kind as AlertKind, match: {}, threshold: {} })}
          />
        </>
      )}
      <Conditions form={form} />
      <ChannelChoice form={form} />
      <Select
        id="rule-severity"
        label="Severity"
        value={values.severity}
        options={SEVERITIES}
        onChange={(severity) => set({ severity })}
      />
      <Sending form={form} />
      {issueOf(issues, '') && (
        <p class="error" role="alert">
          {issueOf(issues, '')}
        </p>
      )}
      <div class="actions">{children}</div>
    </form>
  );
}

/** Thresholds of the kind, and the objects that the rule is restricted to. */
function Conditions({ form: { values, issues, set } }: Pick<RuleFormProps, 'form'>) {
  const { match, threshold } = KINDS[values.kind];
  return (
    <>
      {threshold.map((name) =>
        name === 'certificates' ? (
          <Field
            key={name}
            id="rule-certificates"
            label="Certificates"
            value={values.certificates}
            onInput={(certificates) => set({ certificates })}
            issue={issueOf(issues, 'threshold')}
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

function Sending({ form: { values, issues, set } }: Pick<RuleFormProps, 'form'>) {
  return (
    <>
      <Field
        id="rule-description"
        label="Description of the rule"
        value={values.description}
        onInput={(description) => set({ description })}
        isOptional
        maxLength={500}
      />
      <Field
        id="rule-group"
        label="Group by"
        value={values.groupBy}
        onInput={(groupBy) => set({ groupBy })}
        issue={issueOf(issues, 'groupBy')}
        isOptional
        hint="Fields such as object, workflow or endpoint. Alerts with equal ones share a notification."
      />
      <Field
        id="rule-wait"
        label="Seconds until the first notification"
        type="number"
        min={0}
        value={values.groupWaitSeconds}
        onInput={(groupWaitSeconds) => set({ groupWaitSeconds })}
        issue={issueOf(issues, 'groupWaitMs')}
      />
      <Field
        id="rule-repeat"
        label="Hours until it is sent again"
        type="number"
        min={0}
        value={values.repeatHours}
        onInput={(repeatHours) => set({ repeatHours })}
        issue={issueOf(issues, 'repeatIntervalMs')}
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
