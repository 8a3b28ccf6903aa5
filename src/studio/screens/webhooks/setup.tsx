import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { WebhookListItem } from '../../../contracts/webhook-admin.ts';
import { useQuery } from '../../api/query.ts';
import { foreignNamespace } from '../../app/namespace.ts';
import { session } from '../../app/session-state.ts';
import { Command } from '../../ui/command.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { RefusedReplay } from '../deliveries/refused-replay.tsx';
import { FirstDelivery } from './first-delivery.tsx';
import { type Instructions, instructionsFor, urlWithNamespace } from './instructions.ts';
import { type Provisioned, SecretStep } from './secret-step.tsx';

/** Sets up a webhook step by step: webhook, secret, sender, first delivery. */
export function Setup() {
  const { query } = useLocation();
  const { data, error, reload } = useQuery('listWebhooks', {});
  const catalogue = useQuery('listWebhookProviders', {}).data?.items;
  const chosen = data?.items.find(
    ({ pluginId, event }) => pluginId === query.pluginId && event === query.event,
  );
  const command = chosen ? `svc webhooks provision ${chosen.pluginId} ${chosen.event}` : 'svc webhooks list';
  return (
    <Page title="Set up a webhook" command={command}>
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="webhooks" />}
      {data?.items.length === 0 && (
        <Empty command="svc plugins create">No plugin declares a webhook. Create one that does:</Empty>
      )}
      {data && data.items.length > 0 && <Choice webhooks={data.items} chosen={chosen} />}
      {chosen && catalogue && (
        <Steps
          key={`${chosen.pluginId}/${chosen.event}/${query.instanceId ?? ''}`}
          webhook={chosen}
          instructions={instructionsFor(chosen, catalogue)}
          instanceId={query.instanceId ?? ''}
          delivery={query.delivery}
        />
      )}
    </Page>
  );
}

interface ChoiceProps {
  webhooks: readonly WebhookListItem[];
  chosen: WebhookListItem | undefined;
}

function Choice({ webhooks, chosen }: ChoiceProps) {
  const { route } = useLocation();
  const choose = (index: string): void => {
    const webhook = webhooks[Number(index)];
    const { pluginId, event } = webhook ?? {};
    const target = webhook ? `&${new URLSearchParams({ pluginId: pluginId!, event: event! })}` : '';
    route(`/studio/webhooks?setup=1${target}`, true);
  };
  return (
    <Section title="1. Webhook">
      <label for="setup-webhook">Plugin and event</label>{' '}
      <select
        id="setup-webhook"
        value={chosen ? String(webhooks.indexOf(chosen)) : ''}
        onChange={({ currentTarget }) => choose(currentTarget.value)}
      >
        <option value="">Choose a webhook</option>
        {webhooks.map(({ pluginId, event, provider, auth }, index) => (
          <option key={`${pluginId}/${event}`} value={String(index)}>
            {pluginId}/{event} ({provider ?? auth})
          </option>
        ))}
      </select>
    </Section>
  );
}

interface StepsProps {
  webhook: WebhookListItem;
  instructions: Instructions;
  instanceId: string;
  /** Id of a refused delivery that led here. It can be replayed with the new secret. */
  delivery: string | undefined;
}

function Steps({ webhook, instructions, instanceId, delivery }: StepsProps) {
  const [instance, setInstance] = useState(instanceId);
  const [provisioned, setProvisioned] = useState<Provisioned>();
  const { makesSecret } = instructions;
  const changeInstance = (next: string): void => {
    setInstance(next);
    // The secret and the URL belong to the former instance.
    setProvisioned(undefined);
  };
  const known = webhook.multi
    ? webhook.instances.find((each) => each.instanceId === instance)
    : webhook.provisioned
      ? webhook
      : undefined;
  const url = provisioned?.url ?? known?.url;
  const secret = (
    <SecretStep
      {...{ webhook, instructions, instance, provisioned }}
      onInstance={changeInstance}
      storedUrl={url}
      rotatedAt={known?.rotatedAt ?? null}
      title={makesSecret ? '3. Secret' : '2. Secret'}
      onProvisioned={setProvisioned}
    />
  );
  const sender = (
    <SenderStep {...{ webhook, instructions, url }} title={makesSecret ? '2. Sender' : '3. Sender'} />
  );
  return (
    <>
      {makesSecret ? [sender, secret] : [secret, sender]}
      {provisioned && delivery && <ReplayStep webhookId={delivery} />}
      {(provisioned || known) && (
        <Section title="4. First delivery">
          <FirstDelivery key={instance} {...{ webhook }} instanceId={webhook.multi ? instance : null} />
        </Section>
      )}
    </>
  );
}

/** Leads back to the refused delivery for which the secret was changed. */
function ReplayStep({ webhookId }: { webhookId: string }) {
  const { data, error, reload } = useQuery('getDelivery', { params: { webhookId } });
  return (
    <Section title="Replay the refused delivery">
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the delivery" />}
      {data && <RefusedReplay delivery={data} />}
    </Section>
  );
}

function SenderStep({
  webhook,
  instructions,
  url,
  title,
}: {
  webhook: WebhookListItem;
  instructions: Instructions;
  url: string | undefined;
  title: string;
}) {
  const { steps, setsHeaders } = instructions;
  const namespaceId = foreignNamespace() ?? session.value!.namespaceId;
  const shown = url ?? (setsHeaders ? webhook.url : urlWithNamespace(webhook.url, namespaceId));
  const isLocal = /^https?:\/\/(?:localhost|127\.)/.test(shown);
  return (
    <Section key="sender" title={title}>
      <p>
        URL: <Command text={shown} />
      </p>
      {isLocal && (
        <p class="advice">
          Only senders on this machine reach this URL. Set gateway.publicUrl to the address that senders use.
        </p>
      )}
      <ol>
        {steps.map((step) => (
          <li key={step}>{step}</li>
        ))}
        {!shown.includes('?namespace=') && (
          <li>
            Send the header <code>x-svc-namespace: {namespaceId}</code>.
          </li>
        )}
      </ol>
    </Section>
  );
}
