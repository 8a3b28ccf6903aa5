import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { WebhookListItem } from '../../../contracts/webhook-admin.ts';
import type { WebhookProvider } from '../../../contracts/webhook-providers.ts';
import { call, type Reply } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { Command } from '../../ui/command.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty, Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { Time } from '../../ui/time.tsx';
import { type Action, useAction } from '../../ui/use-action.ts';
import { instructionsFor } from './instructions.ts';
import { Setup } from './setup.tsx';
import { Webhook } from './webhook.tsx';

type Provisioned = Reply<'provisionWebhook'> & { name: string };

/** The list, one webhook, or the set-up of one: the address decides. */
export default function Webhooks() {
  const { setup, pluginId, event, instanceId } = useLocation().query;
  if (setup) return <Setup />;
  if (pluginId && event) return <Webhook {...{ pluginId, event, instanceId }} />;
  return <List />;
}

function List() {
  const { data, error, reload } = useQuery('listWebhooks', {}, { everyMs: 10_000 });
  const catalogue = useQuery('listWebhookProviders', {}).data?.items ?? [];
  const action = useAction();
  const [provisioned, setProvisioned] = useState<Provisioned>();
  return (
    <Page
      title="Webhooks"
      command="svc webhooks list"
      actions={<a href="/studio/webhooks?setup=1">Set up a webhook</a>}
    >
      <Notice action={action} />
      {provisioned && <NewSecret provisioned={provisioned} />}
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="webhooks" />}
      {data?.items.length === 0 && (
        <Empty command="svc plugins create">No plugin declares a webhook. Create one that does:</Empty>
      )}
      {data && data.items.length > 0 && (
        <DataTable
          label="Webhooks"
          columns={columns(action, catalogue, setProvisioned)}
          items={data.items}
          keyOf={({ pluginId, event }) => `${pluginId}/${event}`}
        />
      )}
    </Page>
  );
}

/** A new secret. It is shown this once. */
function NewSecret({ provisioned: { name, url, secret } }: { provisioned: Provisioned }) {
  return (
    <Section title={`Secret of ${name}`}>
      <p>Copy the secret now. It is not shown again.</p>
      <p>
        URL: <Command text={url} />
      </p>
      <p>Secret: {secret === '' ? 'the one you gave' : <Command text={secret} />}</p>
    </Section>
  );
}

const columns = (
  action: Action,
  catalogue: readonly WebhookProvider[],
  onProvisioned: (provisioned: Provisioned) => void,
): ReadonlyArray<Column<WebhookListItem>> => [
  {
    name: 'Webhook',
    value: ({ pluginId, event }) => (
      <a href={`/studio/webhooks?${new URLSearchParams({ pluginId, event })}`}>
        {pluginId}/{event}
      </a>
    ),
  },
  { name: 'State', value: (webhook) => <Status value={stateOf(webhook)} /> },
  { name: 'Authentication', value: ({ provider, auth }) => provider ?? auth },
  { name: 'URL', value: ({ url, provisioned }) => (provisioned ? <code>{url}</code> : '–') },
  {
    name: 'Old secret last used',
    value: ({ previousExpiresAt, previousUsedAt }) => {
      if (previousExpiresAt === null) return '–';
      return previousUsedAt === null ? 'not since the rotation' : <Time ms={previousUsedAt} />;
    },
  },
  {
    name: 'Actions',
    value: (webhook) => {
      const { pluginId, event, provisioned, multi, paused } = webhook;
      const name = `${pluginId}/${event}`;
      const target = { pluginId: pluginId as never, event: event as never };
      const provision = async (): Promise<string> => {
        const reply = await call('provisionWebhook', { body: target });
        onProvisioned({ ...reply, name });
        outdate('listWebhooks');
        return reply.rotated ? `The secret of ${name} was rotated.` : `${name} has a secret.`;
      };
      const toggle = async (): Promise<string> => {
        await call(paused ? 'resumeWebhook' : 'pauseWebhook', { body: target } as never);
        outdate('listWebhooks');
        return paused ? `${name} runs handlers again.` : `${name} stores deliveries and runs no handler.`;
      };
      return (
        <span class="actions">
          {provisioned && !multi && !instructionsFor(webhook, catalogue).makesSecret ? (
            <button type="button" disabled={action.isBusy} onClick={() => action.run(provision)}>
              Rotate secret
            </button>
          ) : (
            <a href={`/studio/webhooks?setup=1&${new URLSearchParams({ pluginId, event })}`}>Set up</a>
          )}
          <button type="button" disabled={!provisioned || action.isBusy} onClick={() => action.run(toggle)}>
            {paused ? 'Resume' : 'Pause'}
          </button>
        </span>
      );
    },
  },
];

function stateOf({ paused, provisioned, instances }: WebhookListItem): string {
  if (paused) return 'paused';
  return provisioned || instances.some((instance) => instance.provisioned) ? 'ready' : 'no secret';
}
