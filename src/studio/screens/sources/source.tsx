import { useState } from 'preact/hooks';
import type { Destination } from '../../../contracts/sources.ts';
import { call } from '../../api/call.ts';
import { useQuery } from '../../api/query.ts';
import { Command } from '../../ui/command.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { ConnectSource } from './connect-source.tsx';
import { NewSourceSecret, type ShownSecret } from './new-source-secret.tsx';
import { SourceDeliveries } from './source-deliveries.tsx';

/** One source: its URL, its destinations with their counts, and its newest deliveries. */
export function SourceScreen({ name }: { name: string }) {
  const params = { name: name as never };
  const { data, error, reload } = useQuery('getSource', { params }, { everyMs: 5000 });
  const action = useAction();
  const [secret, setSecret] = useState<ShownSecret>();
  const rotate = async (): Promise<string> => {
    const made = await call('rotateSource', { params, body: {} });
    setSecret({ name, ...made });
    return 'The previous secret or URL remains valid for 24 hours.';
  };
  return (
    <Page
      title={name}
      command={`svc sources show ${name}`}
      actions={
        <button type="button" disabled={!data || action.isBusy} onClick={() => action.run(rotate)}>
          Rotate secret
        </button>
      }
    >
      <Notice action={action} />
      {secret && <NewSourceSecret shown={secret} />}
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the source" />}
      {data && (
        <>
          <Facts
            facts={[
              ['State', <Status key="state" value={data.paused ? 'paused' : 'active'} />],
              ['Sender', data.provider ?? data.auth],
              ['Secret', data.rotatedAt === null ? 'missing' : <Time key="at" ms={data.rotatedAt} />],
              ['Not protected', unprotected(data.protects)],
              ['Declared in', data.declared ? 'svc.config.json' : null],
              ['URL', <Command key="url" text={data.url} />],
            ]}
          />
          <Section title="Destinations">
            {data.destinations.length === 0 ? (
              <Empty command={`svc sources connect ${name} --forward http://localhost:3000/`}>
                Deliveries are recorded only. Connect a destination:
              </Empty>
            ) : (
              <DataTable
                label="Destinations"
                columns={columns(name, action, reload)}
                items={data.destinations}
                keyOf={(destination) => destination.name}
              />
            )}
            {data.counted.complete || <p>Counts of the newest {data.counted.deliveries} deliveries.</p>}
          </Section>
          {data.declared || <ConnectSource name={name} action={action} onConnected={reload} />}
          <SourceDeliveries name={name} destinations={data.destinations} action={action} />
        </>
      )}
    </Page>
  );
}

function unprotected(protects: Record<string, boolean> | null): string | null {
  if (protects === null) return null;
  const parts = Object.entries(protects).flatMap(([part, isProtected]) => (isProtected ? [] : [part]));
  return parts.length === 0 ? 'nothing' : parts.join(', ');
}

export function targetText({ forward, workflow, queue, command }: Destination): string {
  if (forward !== undefined) return `URL ${forward}`;
  if (workflow !== undefined) return `workflow ${workflow}`;
  return queue === undefined ? `command ${command}` : `queue ${queue}`;
}

const columns = (source: string, action: Action, reload: () => void): ReadonlyArray<Column<Destination>> => [
  { name: 'Destination', value: ({ name }) => name },
  { name: 'Target', value: targetText },
  { name: 'State', value: ({ paused }) => <Status value={paused ? 'paused' : 'active'} /> },
  { name: 'Succeeded', isNumber: true, value: ({ counts }) => counts?.succeeded ?? 0 },
  { name: 'Open', isNumber: true, value: ({ counts }) => (counts ? counts.accepted + counts.retrying : 0) },
  { name: 'Failed', isNumber: true, value: ({ counts }) => (counts ? counts.failed + counts.dead : 0) },
  { name: 'Filtered', isNumber: true, value: ({ counts }) => counts?.filtered ?? 0 },
  { name: 'Filter', value: ({ filter }) => (filter === null ? '–' : <code>{filter}</code>) },
  {
    name: 'Actions',
    value: ({ name, paused }) => {
      const params = { name: source as never };
      const toggle = async (): Promise<string> => {
        await call(paused ? 'resumeSource' : 'pauseSource', { params, body: { destination: name } });
        reload();
        return paused ? `${name} gets deliveries again.` : `${name} is paused. Its deliveries are held.`;
      };
      const disconnect = async (): Promise<string> => {
        await call('disconnectSource', { params: { ...params, destination: name } });
        reload();
        return `${name} is disconnected.`;
      };
      return (
        <span class="actions">
          <button type="button" disabled={action.isBusy} onClick={() => action.run(toggle)}>
            {paused ? 'Resume' : 'Pause'}
          </button>
          <button type="button" disabled={action.isBusy} onClick={() => action.run(disconnect)}>
            Disconnect
          </button>
        </span>
      );
    },
  },
];
