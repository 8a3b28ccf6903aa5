import type {
  WebhookListItem,
  WebhookProtection,
  WebhookRotation,
} from '../../../contracts/webhook-admin.ts';
import { useQuery } from '../../api/query.ts';
import { Command } from '../../ui/command.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';

interface Target {
  pluginId: string;
  event: string;
  instanceId: string | undefined;
}

/** A webhook: its URL, and how far its senders have changed to the current secret. */
export function Webhook({ pluginId, event, instanceId }: Target) {
  const { data, error, reload } = useQuery('listWebhooks', {}, { everyMs: 10_000 });
  const webhook = data?.items.find((item) => item.pluginId === pluginId && item.event === event);
  const query = new URLSearchParams({ pluginId, event, ...(instanceId ? { instanceId } : {}) });
  return (
    <Page
      title={[pluginId, event, ...(instanceId ? [instanceId] : [])].join('/')}
      command="svc webhooks list"
      actions={
        <>
          <a href={`/studio/deliveries?${new URLSearchParams({ pluginId, event })}`}>Deliveries</a>
          <a href={`/studio/webhooks?setup=1&${query}`}>Set up</a>
        </>
      }
    >
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the webhook" />}
      {data && !webhook && <Empty>No loaded plugin declares this webhook.</Empty>}
      {webhook?.multi && !instanceId && <Instances webhook={webhook} />}
      {webhook && (!webhook.multi || instanceId) && <Details {...{ webhook, instanceId }} />}
    </Page>
  );
}

function Instances({ webhook: { pluginId, event, instances } }: { webhook: WebhookListItem }) {
  if (instances.length === 0) return <Empty>It has no instance with a secret yet.</Empty>;
  return (
    <Section title="Instances">
      <ul>
        {instances.map(({ instanceId }) => (
          <li key={instanceId}>
            <a href={`/studio/webhooks?${new URLSearchParams({ pluginId, event, instanceId })}`}>
              {instanceId}
            </a>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Details({ webhook, instanceId }: { webhook: WebhookListItem; instanceId: string | undefined }) {
  const { pluginId, event, provider, auth } = webhook;
  const state = instanceId ? webhook.instances.find((each) => each.instanceId === instanceId) : webhook;
  const query = { pluginId, event, ...(instanceId ? { instanceId: instanceId as never } : {}) };
  const { data, error, reload } = useQuery('getWebhookRotation', { query }, { everyMs: 10_000 });
  return (
    <>
      <Facts
        facts={[
          ['URL', state?.provisioned ? <Command key="url" text={state.url} /> : 'no secret yet'],
          ['Authentication', provider ?? auth],
          [
            'Not protected',
            webhook.protects ? unprotectedText(webhook.protects) : 'unknown: the plugin checks',
          ],
          ['Secret since', state?.rotatedAt ? <Time key="since" ms={state.rotatedAt} /> : null],
          [
            'Old secret until',
            data?.previousExpiresAt ? <Time key="until" ms={data.previousExpiresAt} /> : null,
          ],
        ]}
      />
      {error && <Failure error={error} onRetry={reload} />}
      {data && data.rotatedAt !== null && <Rotation rotation={data} />}
    </>
  );
}

/** Names what a third party could change, or replay, without a refusal. */
function unprotectedText({ body, url, time, sender }: WebhookProtection): string {
  const open = [!body && 'body', !url && 'URL', !time && 'time', !sender && 'sender'].filter(Boolean);
  return open.length === 0 ? 'nothing' : open.join(', ');
}

function Rotation({ rotation }: { rotation: WebhookRotation }) {
  const { current, previous, previousExpiresAt, complete, senders } = rotation;
  const all = current + previous;
  return (
    <Section title="Deliveries since the secret was created">
      <p>
        {shareText(rotation)}{' '}
        {all > 0 && <progress aria-label="Deliveries with the current secret" max={all} value={current} />}
      </p>
      {!complete && <p>Only the newest 2,000 deliveries were counted.</p>}
      {previous > 0 && (
        <p class="advice">
          {previousExpiresAt === null
            ? 'The old secret has expired. Deliveries with it are refused.'
            : 'Set the current secret at each sender whose latest delivery used the old one.'}
        </p>
      )}
      {senders.length > 0 && (
        <DataTable label="Senders" columns={COLUMNS} items={senders} keyOf={({ source }) => source} />
      )}
    </Section>
  );
}

function shareText({ current, previous }: WebhookRotation): string {
  const all = current + previous;
  if (all === 0) return 'No sender has delivered since then.';
  const percent = Math.round((previous / all) * 100);
  return `${previous} of ${all} deliveries (${percent} %) used the old secret.`;
}

const COLUMNS: ReadonlyArray<Column<WebhookRotation['senders'][number]>> = [
  { name: 'Sender', value: ({ source }) => source },
  { name: 'Old secret', value: ({ previous }) => previous, isNumber: true },
  { name: 'Current secret', value: ({ current }) => current, isNumber: true },
  { name: 'Latest delivery', value: ({ latestAt }) => <Time ms={latestAt} /> },
  {
    name: 'Latest used',
    value: ({ latest }) => (latest === 'previous' ? 'the old secret' : 'the current one'),
  },
];
