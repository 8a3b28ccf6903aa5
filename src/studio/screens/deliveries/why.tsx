import { useLocation } from 'preact-iso';
import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { call } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { Notice } from '../../ui/notice.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { adviceFor, type Remedy, type Surroundings } from './advice.ts';
import { isPaused, type Target } from './paused.ts';
import { RefusedReplay } from './refused-replay.tsx';

const ENDED_WELL = ['succeeded', 'challenge'];

/** Why a delivery is in its state, and the button that helps. */
export function Why({ delivery }: { delivery: WebhookDeliveryDetails }) {
  const isNeeded = !ENDED_WELL.includes(delivery.status);
  const around = useSurroundings(delivery, isNeeded);
  const action = useAction();
  const { explanation } = delivery;
  const advice = adviceFor(delivery, around);
  if (!advice) return null;
  return (
    <div class="advice">
      {explanation && (
        <p>
          <span class="title">{explanation.reason}</span>: {explanation.hint}
        </p>
      )}
      <p>{advice.text}</p>
      {advice.remedy && (
        <p class="actions">
          <RemedyButton remedy={advice.remedy} delivery={delivery} action={action} />
        </p>
      )}
      {action.message && <Notice action={action} />}
      {delivery.status === 'refused' && <RefusedReplay delivery={delivery} />}
    </div>
  );
}

function useSurroundings(delivery: WebhookDeliveryDetails, enabled: boolean): Surroundings {
  const webhooks = useQuery('listWebhooks', {}, { enabled });
  const plugins = useQuery('listPlugins', {}, { enabled });
  const plugin = plugins.data?.items.find(({ id }) => id === delivery.pluginId);
  return {
    isPaused: isPaused(webhooks.data?.items ?? [], delivery),
    plugin: plugins.data ? (plugin?.status ?? 'missing') : undefined,
  };
}

interface RemedyProps {
  remedy: Remedy;
  delivery: WebhookDeliveryDetails;
  action: Action;
}

function RemedyButton({ remedy, delivery, action }: RemedyProps) {
  const { route } = useLocation();
  const { webhookId, pluginId, event, instanceId, traceId, replayableUntil } = delivery;
  const plugin = `/studio/plugins/${encodeURIComponent(pluginId)}`;
  const webhook = new URLSearchParams({ pluginId, event, ...(instanceId ? { instanceId } : {}) });
  const run = (label: string, work: () => Promise<string>) => (
    <button type="button" disabled={action.isBusy} onClick={() => action.run(work)}>
      {label}
    </button>
  );
  switch (remedy) {
    case 'secret': {
      const toReplay = replayableUntil === null ? '' : `&delivery=${webhookId}`;
      return (
        <a href={`/studio/webhooks?setup=1&${webhook}${toReplay}`}>Enter, create or rotate the secret</a>
      );
    }
    case 'rotation':
      return <a href={`/studio/webhooks?${webhook}`}>Show which senders use the old secret</a>;
    case 'plugin':
      return <a href={plugin}>Open the plugin</a>;
    case 'hosts':
      return <a href="/studio/hosts">Open the hosts</a>;
    case 'logs':
      return <a href={`/studio/logs?traceId=${encodeURIComponent(traceId)}`}>Open the log</a>;
    case 'resume':
      return run('Resume the webhook', async () => {
        await call('resumeWebhook', { body: targetOf(delivery) });
        outdate('listWebhooks', 'getDelivery');
        return 'The webhook runs handlers again.';
      });
    case 'enable':
      return run('Enable the plugin', async () => {
        await call('enablePlugin', { params: { pluginId: pluginId as never } });
        outdate('listPlugins', 'getDelivery');
        return 'The plugin is enabled.';
      });
    case 'replay':
      return run('Replay the delivery', async () => {
        const replayed = await call('replayDelivery', { params: { webhookId } });
        route(`/studio/deliveries/${replayed.webhookId}`);
        return 'The delivery is replayed.';
      });
  }
}

function targetOf({ pluginId, event, instanceId }: Target) {
  return { pluginId, event, ...(instanceId ? { instanceId } : {}) } as never;
}
