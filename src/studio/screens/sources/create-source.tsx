import { useState } from 'preact/hooks';
import { PROVIDER_IDS } from '../../../contracts/provider-ids.ts';
import { call } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { Section } from '../../ui/section.tsx';
import type { Action } from '../../ui/use-action.ts';
import type { ShownSecret } from './new-source-secret.tsx';

interface CreateSourceProps {
  action: Action;
  onCreated: (shown: ShownSecret) => void;
}

/** Value of the choice for senders that sign nothing. */
const TOKEN = '';

export function CreateSource({ action, onCreated }: CreateSourceProps) {
  const [name, setName] = useState('');
  const [provider, setProvider] = useState<string>(TOKEN);
  const [secret, setSecret] = useState('');
  const create = async (): Promise<string> => {
    const sender = provider === TOKEN ? { auth: { type: 'token' } } : { provider };
    const given = secret === '' ? {} : { secret };
    const made = await call('createSource', { body: { name, ...sender, ...given } as never });
    onCreated(made);
    setName('');
    setSecret('');
    outdate('listSources');
    return made.provisioned
      ? `${made.name} takes deliveries.`
      : `${made.name} needs the secret of its sender. Open the source to enter it.`;
  };
  return (
    <Section title="Create a source">
      <form
        class="fields"
        onSubmit={(event) => {
          event.preventDefault();
          action.run(create);
        }}
      >
        <p>
          <label for="source-name">Name</label>{' '}
          <input
            id="source-name"
            required
            maxLength={64}
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </p>
        <p>
          <label for="source-provider">Sender</label>{' '}
          <select
            id="source-provider"
            value={provider}
            onChange={({ currentTarget }) => setProvider(currentTarget.value)}
          >
            <option value={TOKEN}>Any sender (token in the URL)</option>
            {PROVIDER_IDS.map((id) => (
              <option key={id} value={id}>
                {id}
              </option>
            ))}
          </select>
        </p>
        <p>
          <label for="source-secret">Secret from the sender, if it made one</label>{' '}
          <input
            id="source-secret"
            type="password"
            autocomplete="off"
            value={secret}
            onInput={({ currentTarget }) => setSecret(currentTarget.value)}
          />
        </p>
        <button type="submit" disabled={action.isBusy}>
          Create source
        </button>
      </form>
    </Section>
  );
}
