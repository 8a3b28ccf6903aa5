import type { ComponentChildren } from 'preact';
import type { AlertChannelType } from '../../../contracts/alert-config.ts';
import type { AlertChannel } from '../../../contracts/alert-records.ts';
import { Field, FormIssue, Select } from '../../ui/field.tsx';
import { type Form, textFields } from '../../ui/use-form.ts';
import { wordsOf } from './rule-values.ts';
import { ForAllField } from './views.tsx';

/** Values of the form of a channel, as they are typed. */
export interface ChannelValues {
  name: string;
  type: AlertChannelType;
  description: string;
  url: string;
  host: string;
  port: string;
  security: string;
  user: string;
  from: string;
  to: string;
  secret: string;
  /** Whether a new channel belongs to the operators. */
  isForAll: boolean;
}

export const NEW_CHANNEL: ChannelValues = {
  ...{ name: '', type: 'webhook', description: '', url: '', host: '', port: '587', security: 'starttls' },
  ...{ user: '', from: '', to: '', secret: '', isForAll: false },
};

export function valuesOf({ name, type, description, settings }: AlertChannel): ChannelValues {
  const text = (field: string): string =>
    settings[field] === undefined ? '' : String(settings[field] ?? '');
  return {
    ...NEW_CHANNEL,
    name,
    type,
    description: description ?? '',
    ...{ url: text('url'), host: text('host'), port: text('port'), security: text('security') },
    ...{ user: text('user'), from: text('from') },
    to: Array.isArray(settings.to) ? settings.to.join(', ') : '',
  };
}

const TYPES = [
  ['webhook', 'Signed webhook'],
  ['slack', 'Slack'],
  ['email', 'E-mail (SMTP)'],
  ['pagerduty', 'PagerDuty'],
] as const;

/** The secret of each type: the field of the body, and its label. */
const SECRETS = {
  webhook: {
    field: 'secret',
    label: 'Secret',
    hint: 'whsec_…. Empty: a new one is generated and shown once.',
  },
  slack: {
    field: 'url',
    label: 'URL of the incoming webhook',
    hint: 'Slack shows it in the settings of the app.',
  },
  email: { field: 'password', label: 'Password', hint: 'Empty: the server asks for none.' },
  pagerduty: { field: 'routingKey', label: 'Routing key', hint: 'Of an integration with the Events API v2.' },
} as const;

/** Returns the settings of a channel, without its name and type. An empty secret is left out, so that it is kept. */
export function settingsOf(values: ChannelValues): Record<string, unknown> {
  const { type, description, url, host, port, security, user, from, to, secret } = values;
  const ofType = {
    webhook: { url },
    slack: {},
    email: { host, port: Number(port), security, user: user === '' ? null : user, from, to: wordsOf(to) },
    pagerduty: url === '' ? {} : { url },
  }[type];
  return {
    description: description === '' ? null : description,
    ...ofType,
    ...(secret === '' ? {} : { [SECRETS[type].field]: secret }),
  };
}

const SECURITY = [
  ['starttls', 'STARTTLS, required'],
  ['tls', 'TLS from the first byte'],
  ['none', 'none: not encrypted'],
] as const;

interface ChannelFormProps {
  form: Form<ChannelValues>;
  isNew: boolean;
  children: ComponentChildren;
}

/** Form of a channel. Its secret is never filled in. */
export function ChannelForm({ form, isNew, children }: ChannelFormProps) {
  const { values, issues, set } = form;
  const secret = SECRETS[values.type];
  const text = textFields(form, 'channel');
  const isSecretRequired = isNew && (values.type === 'slack' || values.type === 'pagerduty');
  return (
    <form class="schema-form" onSubmit={form.onSubmit}>
      {isNew && (
        <>
          <Field {...text('name')} label="Name of the channel" isRequired maxLength={64} />
          <Select
            id="channel-type"
            label="Type"
            value={values.type}
            options={TYPES}
            onInput={(type) => set({ ...NEW_CHANNEL, name: values.name, type: type as AlertChannelType })}
          />
          <ForAllField
            id="channel-all"
            isChecked={values.isForAll}
            onChange={(isForAll) => set({ isForAll })}
          />
        </>
      )}
      {values.type === 'webhook' && <Field {...text('url')} label="URL" type="url" isRequired />}
      {values.type === 'pagerduty' && (
        <Field {...text('url')} label="URL of the Events API" type="url" isOptional />
      )}
      {values.type === 'email' && (
        <>
          <Field {...text('host')} label="SMTP server" isRequired placeholder="smtp.example.com" />
          <Field {...text('port')} label="Port" type="number" min={1} isRequired />
          <Select {...text('security')} label="Encryption" options={SECURITY} />
          <Field {...text('user')} label="User" isOptional />
          <Field {...text('from')} label="From" type="email" isRequired />
          <Field {...text('to')} label="To" isRequired hint="Several with commas." />
        </>
      )}
      <Field
        {...text('secret', secret.field)}
        label={isNew ? secret.label : `New: ${secret.label}`}
        type="password"
        isRequired={isSecretRequired}
        isOptional={!isSecretRequired}
        hint={isNew ? secret.hint : 'It is not shown. Empty: it stays as it is.'}
      />
      <Field {...text('description')} label="Description of the channel" isOptional maxLength={500} />
      <FormIssue issues={issues} />
      <div class="actions">{children}</div>
    </form>
  );
}
