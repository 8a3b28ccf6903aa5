import type { Destination } from '../../../contracts/sources.ts';
import type { WebhookDelivery } from '../../../contracts/webhook-deliveries.ts';
import { call } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import type { Action } from '../../ui/use-action.ts';

interface SourceDeliveriesProps {
  name: string;
  destinations: readonly Destination[];
  action: Action;
}

/** Newest deliveries of a source and to its destinations. */
export function SourceDeliveries({ name, destinations, action }: SourceDeliveriesProps) {
  const query = { pluginId: 'sources' as never, event: name as never, limit: 50 };
  const { data, error, reload } = useQuery('listDeliveries', { query }, { everyMs: 5000 });
  return (
    <Section title="Newest deliveries">
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="deliveries" />}
      {data?.items.length === 0 && <p>None yet.</p>}
      {data && data.items.length > 0 && (
        <DataTable
          label="Newest deliveries"
          columns={columns(name, destinations.length > 0, action)}
          items={data.items}
          keyOf={({ webhookId }) => webhookId}
        />
      )}
    </Section>
  );
}

const link = (id: string) => <a href={`/studio/deliveries/${id}`}>{id.slice(0, 8)}</a>;

const columns = (
  name: string,
  hasDestinations: boolean,
  action: Action,
): ReadonlyArray<Column<WebhookDelivery>> => [
  { name: 'Delivery', value: ({ webhookId }) => link(webhookId) },
  { name: 'Received', value: ({ receivedAt }) => <Time ms={receivedAt} /> },
  { name: 'To', value: ({ instanceId }) => instanceId ?? 'the source' },
  { name: 'Status', value: ({ status }) => <Status value={status} /> },
  { name: 'Of', value: ({ replayOf }) => (replayOf === null ? '–' : link(replayOf)) },
  { name: 'Reason', value: ({ reason }) => reason ?? '–' },
  {
    name: 'Actions',
    value: ({ webhookId, instanceId, status }) => {
      const canReplay = ['succeeded', 'failed', 'dead', 'interrupted'].includes(status);
      const replay = async (): Promise<string> => {
        const made =
          instanceId === null
            ? await call('replaySource', { params: { name: name as never }, body: { webhookId } })
            : await call('replayDelivery', { params: { webhookId } });
        outdate('listDeliveries');
        return `${made.replayOf} is replayed as ${made.webhookId}.`;
      };
      return (
        <button
          type="button"
          aria-label={`Replay ${webhookId}`}
          disabled={!canReplay || !hasDestinations || action.isBusy}
          onClick={() => action.run(replay)}
        >
          Replay
        </button>
      );
    },
  },
];
