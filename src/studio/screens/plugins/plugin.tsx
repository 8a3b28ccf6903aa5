import { useLocation, useRoute } from 'preact-iso';
import type { PluginDetail } from '../../../contracts/marketplace.ts';
import { call } from '../../api/call.ts';
import { outdate, useQuery } from '../../api/query.ts';
import { Facts } from '../../ui/facts.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Section } from '../../ui/section.tsx';
import { Failure, Loading } from '../../ui/states.tsx';
import { Status } from '../../ui/status.tsx';
import { useAction } from '../../ui/use-action.ts';
import { Install } from './install.tsx';
import { Permissions } from './permissions.tsx';
import { RunCommand } from './run-command.tsx';
import { RunRoute } from './run-route.tsx';

export default function Plugin() {
  const { params } = useRoute();
  const pluginId = params.pluginId! as never;
  const { data, error, reload } = useQuery('getPlugin', { params: { pluginId } });
  const action = useAction();
  const toggle = (): void =>
    action.run(async () => {
      await call(data!.enabled ? 'disablePlugin' : 'enablePlugin', { params: { pluginId } });
      outdate('getPlugin', 'listPlugins');
      return data!.enabled ? 'The plugin is disabled.' : 'The plugin is enabled.';
    });
  return (
    <Page
      title={params.pluginId!}
      command={`svc plugins show ${params.pluginId}`}
      actions={
        data &&
        data.origin !== 'project' && (
          <button type="button" disabled={action.isBusy} onClick={toggle}>
            {data.enabled ? 'Disable' : 'Enable'}
          </button>
        )
      }
    >
      <Notice action={action} />
      {error && <Failure error={error} onRetry={reload} />}
      {!data && !error && <Loading what="the plugin" />}
      {data && <Details plugin={data} />}
    </Page>
  );
}

function Details({ plugin }: { plugin: PluginDetail }) {
  const { query } = useLocation();
  const { status, faults, version, keptVersion, origin, source, resolved, display, permissions } = plugin;
  return (
    <>
      <p class="verdict">
        <Status value={status} /> {display.description}
      </p>
      {faults.map(({ code, path, message }) => (
        <p key={`${code} ${path}`} class="advice">
          {path}: {message}
        </p>
      ))}
      <Facts
        facts={[
          ['Version', version],
          ['Version that still runs', keptVersion],
          ['Origin', origin],
          ['Source', source],
          ['Resolved', resolved],
        ]}
      />
      <Parts
        title="Webhooks"
        items={plugin.webhooks.map(({ event, auth, async }) => ({
          text: event,
          href: `/studio/webhooks?${new URLSearchParams({ pluginId: plugin.id, event })}`,
          note: `: ${auth}${async ? ', async' : ''}`,
        }))}
      />
      {plugin.routes.length > 0 && (
        <Section title="Routes">
          {plugin.routes.map((route) => (
            <RunRoute key={`${route.method} ${route.path}`} route={route} />
          ))}
        </Section>
      )}
      <Parts
        title="Jobs"
        items={plugin.jobs.map(({ id, description }) => ({
          text: description ? `${id}: ${description}` : id,
        }))}
      />
      <Parts
        title="Workflows"
        items={plugin.workflows.map(({ id, refused }) => ({
          text: id,
          ...(refused
            ? { note: ' (invalid)' }
            : { href: `/studio/runs?workflowId=${encodeURIComponent(id)}` }),
        }))}
      />
      <Parts
        title="Starts by itself"
        items={plugin.startsItself.map(({ what, name, when }) => ({ text: `${what} ${name}: ${when}` }))}
      />
      {plugin.commands.length > 0 && (
        <Section title="Commands">
          {plugin.commands.map((command) => (
            <RunCommand
              key={command.id}
              pluginId={plugin.id}
              command={command}
              isShown={command.id === query.command}
            />
          ))}
        </Section>
      )}
      <Permissions pluginId={plugin.id} permissions={permissions} />
      {origin === 'installed' && (
        <Section title="Update">
          <Install pluginId={plugin.id} onDone={() => {}} />
        </Section>
      )}
    </>
  );
}

interface Part {
  text: string;
  /** Address of its screen. */
  href?: string;
  /** Text after the link. */
  note?: string;
}

function Parts({ title, items }: { title: string; items: readonly Part[] }) {
  if (items.length === 0) return null;
  return (
    <Section title={title}>
      <ul>
        {items.map(({ text, href, note }) => (
          <li key={text}>
            {href ? <a href={href}>{text}</a> : text}
            {note}
          </li>
        ))}
      </ul>
    </Section>
  );
}
