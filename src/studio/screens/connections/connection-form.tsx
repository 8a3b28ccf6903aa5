import type { ConnectionProvider } from '../../../contracts/connections.ts';
import { call, type Input, type Reply } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { CheckField, Field, FormIssue, Select } from '../../ui/field.tsx';
import { Section } from '../../ui/section.tsx';
import type { Action } from '../../ui/use-action.ts';
import { useFocusNew } from '../../ui/use-focus-new.ts';
import { type Form, textFields, useForm } from '../../ui/use-form.ts';

/** Value of the choice for a provider that is not in the catalogue. */
const GENERIC = '';

interface Values {
  name: string;
  provider: string;
  /** Values of the variables of the provider. */
  variables: Record<string, string>;
  issuer: string;
  authorizationUrl: string;
  tokenUrl: string;
  revocationUrl: string;
  clientId: string;
  /** The secret itself, or the name of a stored one. */
  secret: string;
  isStored: boolean;
  scopes: string;
}

const FIRST: Values = {
  ...{ name: '', provider: 'github', variables: {}, issuer: '', authorizationUrl: '', tokenUrl: '' },
  ...{ revocationUrl: '', clientId: '', secret: '', isStored: false, scopes: '' },
};

function bodyOf(values: Values, provider: ConnectionProvider | undefined): Input<'createConnection'>['body'] {
  const { name, clientId, secret, isStored, scopes } = values;
  const given = (names: ReadonlyArray<keyof Values>) =>
    Object.fromEntries(names.flatMap((each) => (values[each] === '' ? [] : [[each, values[each]]])));
  const words = scopes.split(/[\s,]+/).filter((scope) => scope !== '');
  const variables = Object.fromEntries(Object.entries(values.variables).filter(([, value]) => value !== ''));
  const sender = provider
    ? { provider: provider.id, ...(Object.keys(variables).length > 0 ? { variables } : {}) }
    : { endpoints: given(['issuer', 'authorizationUrl', 'tokenUrl', 'revocationUrl']) };
  return {
    name,
    clientId,
    ...sender,
    ...(secret === '' ? {} : { clientSecret: isStored ? { secret } : secret }),
    ...(words.length > 0 ? { scopes: words } : {}),
  } as Input<'createConnection'>['body'];
}

interface CreateConnectionProps {
  action: Action;
  onCreated: (created: Reply<'createConnection'>) => void;
}

/** Creates a connection with a provider of the catalogue, or with any OAuth 2 provider. */
export function CreateConnection({ action, onCreated }: CreateConnectionProps) {
  const providers = useQuery('listConnectionProviders', {});
  const find = (id: string) => providers.data?.items.find((provider) => provider.id === id);
  const form = useForm(FIRST, action, async (values) => {
    const created = await call('createConnection', { body: bodyOf(values, find(values.provider)) });
    form.reset();
    outdate('listConnections');
    onCreated(created);
    return `${created.name} is created. Authorize it next.`;
  });
  const { values, issues, set } = form;
  const provider = find(values.provider);
  const text = textFields(form, 'connection');
  useFocusNew('connection', 'connection-name');
  const options = [
    ...(providers.data?.items ?? []).map(({ id, name }) => [id, name] as const),
    [GENERIC, 'Another OAuth 2 provider'] as const,
  ];
  return (
    <Section title="Create a connection">
      <form class="schema-form" onSubmit={form.onSubmit}>
        <Field {...text('name')} label="Name" isRequired maxLength={64} />
        <Select
          id="connection-provider"
          label="Provider"
          value={values.provider}
          options={options}
          onInput={(id) => set({ provider: id, variables: find(id)?.variables ?? {} })}
        />
        {provider ? <ProviderFields provider={provider} form={form} /> : <EndpointUrls text={text} />}
        <Field {...text('clientId')} label="Client id" isRequired />
        <SecretField form={form} />
        <Field
          {...text('scopes')}
          label="Scopes"
          isOptional
          hint={provider ? `Empty: ${provider.scopes.join(' ') || 'none'}` : 'Several with spaces.'}
        />
        <FormIssue issues={issues} />
        <div class="actions">
          <button type="submit" class="primary" disabled={action.isBusy}>
            Create connection
          </button>
        </div>
      </form>
    </Section>
  );
}

function ProviderFields({ provider, form }: { provider: ConnectionProvider; form: Form<Values> }) {
  const { variables } = form.values;
  return (
    <>
      <p class="hint">
        Register an OAuth client at{' '}
        <a href={provider.registerUrl} target="_blank" rel="noreferrer">
          {provider.name}
        </a>
        . Its redirect URI is <code>{`${location.origin}/oauth/callback`}</code>, or with{' '}
        <code>gateway.publicUrl</code> that URL and <code>/oauth/callback</code>. {provider.notes.join(' ')}
      </p>
      {Object.entries(provider.variables).map(([name, first]) => (
        <Field
          key={name}
          id={`connection-variable-${name}`}
          label={`${provider.name}: ${name}`}
          value={variables[name] ?? first}
          onInput={(value) => form.set({ variables: { ...variables, [name]: value } })}
        />
      ))}
    </>
  );
}

function EndpointUrls({ text }: { text: ReturnType<typeof textFields<Values>> }) {
  return (
    <>
      <Field
        {...text('issuer')}
        label="Issuer"
        type="url"
        isOptional
        hint="Its discovery document names the endpoints. Without an issuer, enter them."
      />
      <Field {...text('authorizationUrl')} label="Authorization URL" type="url" isOptional />
      <Field {...text('tokenUrl')} label="Token URL" type="url" isOptional />
      <Field {...text('revocationUrl')} label="Revocation URL" type="url" isOptional />
    </>
  );
}

function SecretField({ form }: { form: Form<Values> }) {
  const { values, set } = form;
  return (
    <>
      <Field
        {...textFields(form, 'connection')('secret', 'clientSecret')}
        label={values.isStored ? 'Name of the stored secret' : 'Client secret'}
        type={values.isStored ? 'text' : 'password'}
        isOptional
        hint="Public clients have none. It is stored encrypted and never shown again."
      />
      <CheckField
        id="connection-stored"
        label="Use a secret of the screen Secrets"
        isChecked={values.isStored}
        onChange={(isStored) => set({ isStored, secret: '' })}
      />
    </>
  );
}
