import { useState } from 'preact/hooks';
import { call } from '../../api/call.ts';
import { Section } from '../../ui/section.tsx';
import type { Action } from '../../ui/use-action.ts';

interface ConnectSourceProps {
  name: string;
  action: Action;
  onConnected: () => void;
}

const KINDS = {
  forward: 'URL, such as http://localhost:3000/hook',
  workflow: 'Id of a workflow',
  queue: 'Name of a queue',
  command: 'Command, as plugin/command',
} as const;
type Kind = keyof typeof KINDS;

export function ConnectSource({ name, action, onConnected }: ConnectSourceProps) {
  const [kind, setKind] = useState<Kind>('forward');
  const [target, setTarget] = useState('');
  const [filter, setFilter] = useState('');
  const connect = async (): Promise<string> => {
    const body = { [kind]: target, ...(filter === '' ? {} : { filter }) };
    const made = await call('connectSource', { params: { name: name as never }, body });
    setTarget('');
    setFilter('');
    onConnected();
    return `${made.name} is connected.`;
  };
  return (
    <Section title="Connect a destination">
      <form
        class="fields"
        onSubmit={(event) => {
          event.preventDefault();
          action.run(connect);
        }}
      >
        <p>
          <label for="destination-kind">Hand over to</label>{' '}
          <select
            id="destination-kind"
            value={kind}
            onChange={({ currentTarget }) => setKind(currentTarget.value as Kind)}
          >
            {Object.keys(KINDS).map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </p>
        <p>
          <label for="destination-target">{KINDS[kind]}</label>{' '}
          <input
            id="destination-target"
            required
            value={target}
            onInput={({ currentTarget }) => setTarget(currentTarget.value)}
          />
        </p>
        <p>
          <label for="destination-filter">Filter (CEL), such as body.amount &gt; 100</label>{' '}
          <input
            id="destination-filter"
            value={filter}
            onInput={({ currentTarget }) => setFilter(currentTarget.value)}
          />
        </p>
        <button type="submit" disabled={action.isBusy}>
          Connect
        </button>
      </form>
    </Section>
  );
}
