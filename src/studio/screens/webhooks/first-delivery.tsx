import { useState } from 'preact/hooks';
import type { WebhookListItem } from '../../../contracts/webhook-admin.ts';
import type { WebhookDelivery } from '../../../contracts/webhook-deliveries.ts';
import { call } from '../../api/call.ts';
import { type LiveState, useLive } from '../../api/live.ts';
import { useQuery } from '../../api/query.ts';
import { Notice } from '../../ui/notice.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { useAction } from '../../ui/use-action.ts';
import { Why } from '../deliveries/why.tsx';

const RUNNING = ['accepted', 'running', 'retrying'];

interface FirstDeliveryProps {
  webhook: WebhookListItem;
  instanceId: string | null;
}

/** Waits for a delivery of the sender and explains its verdict. Later deliveries replace it. */
export function FirstDelivery({ webhook, instanceId }: FirstDeliveryProps) {
  const { pluginId, event } = webhook;
  const [latest, setLatest] = useState<WebhookDelivery>();
  const state = useLive(
    'streamDeliveries',
    { query: { pluginId, event } as never },
    {
      isOn: true,
      onEvent: ({ event: kind, data }) => {
        const delivery = data as WebhookDelivery;
        if (kind === 'delivery' && delivery.instanceId === instanceId) setLatest(delivery);
      },
    },
  );
  return (
    <>
      <p role="status">{waitingText(state, latest)}</p>
      {latest && <Verdict key={latest.webhookId} webhookId={latest.webhookId} />}
      {latest?.origin !== 'sender' && <Sample webhook={webhook} instanceId={instanceId} />}
    </>
  );
}

function waitingText(state: LiveState, latest: WebhookDelivery | undefined): string {
  if (state === 'off') return 'Deliveries cannot be shown live here. See the list of deliveries.';
  if (state !== 'live') return 'Connecting…';
  if (!latest) return 'Waiting for the first delivery of the sender…';
  if (latest.origin !== 'sender') return 'The sample arrived. Waiting for the first delivery of the sender…';
  return latest.status === 'refused'
    ? 'A delivery arrived and was refused. Waiting for the next one…'
    : 'A delivery of the sender arrived. The webhook is set up.';
}

function Verdict({ webhookId }: { webhookId: string }) {
  const [isRunning, setRunning] = useState(true);
  const { data, error, reload } = useQuery(
    'getDelivery',
    { params: { webhookId } },
    isRunning ? { everyMs: 1000 } : {},
  );
  const nowRunning = data === undefined || RUNNING.includes(data.status);
  if (nowRunning !== isRunning) setRunning(nowRunning);
  if (error) return <Failure error={error} onRetry={reload} />;
  if (!data) return <Loading what="the delivery" />;
  const stopped = data.status === 'refused' ? data.steps.at(-1)?.step : undefined;
  return (
    <>
      <p class="verdict">
        <Status value={data.status} />
        {stopped && <span>at the step “{stopped}”</span>}
        <a href={`/studio/deliveries/${webhookId}`}>Open the delivery</a>
      </p>
      <Why delivery={data} />
    </>
  );
}

/** Sends a sample, which shows that the way from the gateway to the handler works. */
function Sample({ webhook: { pluginId, event }, instanceId }: FirstDeliveryProps) {
  const action = useAction();
  const send = async (): Promise<string> => {
    const target = { pluginId, event, ...(instanceId ? { instanceId: instanceId as never } : {}) };
    const { status } = await call('sendSample', { body: target });
    return `A sender would get ${status}.`;
  };
  return (
    <>
      <button type="button" disabled={action.isBusy} onClick={() => action.run(send)}>
        Send a sample
      </button>
      <Notice action={action} />
    </>
  );
}
