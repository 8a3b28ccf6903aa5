import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { PlanChange, PluginPlan } from '../../../contracts/marketplace.ts';
import { call } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { Facts } from '../../ui/facts.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Section } from '../../ui/section.tsx';
import { useAction } from '../../ui/use-action.ts';

interface InstallProps {
  /** The plugin to update. Undefined installs a new one. */
  pluginId?: string;
  /** Called with the id of the installed plugin. */
  onDone: (pluginId: string) => void;
}

/** Installs or updates a plugin. The changes of its permissions are shown before the confirmation. */
export function Install({ pluginId, onDone }: InstallProps) {
  const [source, setSource] = useState('');
  const [plan, setPlan] = useState<PluginPlan>();
  const action = useAction();
  const isUpdate = pluginId !== undefined;
  const named = source.trim() === '' ? {} : { source: source.trim() };
  const preview = async (): Promise<string> => {
    setPlan(undefined);
    const target = isUpdate ? { pluginId: pluginId as never } : {};
    const found = await call('planPlugin', { body: { ...target, ...named, runManifest: false } });
    if (!isUpdate && found.installed !== null)
      return `${found.id} is already installed in version ${found.installed}. Open it to update it.`;
    setPlan(found);
    return '';
  };
  const confirm = async ({ id, manifestDigest }: PluginPlan): Promise<string> => {
    const body = { ...named, manifestDigest, runManifest: false };
    if (isUpdate) await call('updatePlugin', { params: { pluginId: id as never }, body });
    else await call('installPlugin', { body: { ...body, source: source.trim() } });
    setPlan(undefined);
    outdate('listPlugins', 'getPlugin', 'listWebhooks');
    onDone(id);
    return isUpdate ? 'The plugin is updated.' : 'The plugin is installed.';
  };
  return (
    <div class="decide">
      <label for="plugin-source">
        {isUpdate
          ? 'New source (empty: the installed one)'
          : 'Package name, git URL, or absolute path of an archive or folder on the server'}
      </label>
      <div class="actions">
        <input
          id="plugin-source"
          value={source}
          readOnly={action.isBusy}
          placeholder="@acme/orders@^1.2.0"
          onInput={({ currentTarget }) => {
            setSource(currentTarget.value);
            setPlan(undefined);
          }}
        />
        <button
          type="button"
          disabled={(!isUpdate && source.trim() === '') || action.isBusy}
          onClick={() => action.run(preview)}
        >
          {action.isBusy ? 'Working…' : 'Show the changes'}
        </button>
      </div>
      <Notice action={action} />
      {plan && (
        <Plan plan={plan}>
          <button
            type="button"
            class="primary"
            disabled={action.isBusy}
            onClick={() => action.run(() => confirm(plan))}
          >
            {isUpdate ? 'Update' : 'Install'} {plan.id} {plan.version}
          </button>
        </Plan>
      )}
    </div>
  );
}

function Plan({ plan, children }: { plan: PluginPlan; children: ComponentChildren }) {
  const { installed, version, resolved, changes, warnings } = plan;
  const permissions = changes.filter(({ what }) => what === 'permission');
  const others = changes.filter(({ what }) => what !== 'permission');
  return (
    <Section title={`Changes of ${plan.id}`}>
      <Facts
        facts={[
          ['Version', installed === null ? version : `${installed} → ${version}`],
          ['Resolved', resolved],
        ]}
      />
      {warnings.map((warning) => (
        <p key={warning} class="advice">
          {warning}
        </p>
      ))}
      <h3>Permissions</h3>
      {permissions.length === 0 ? <p>They do not change.</p> : <Changes changes={permissions} />}
      {others.length > 0 && (
        <>
          <h3>Everything else</h3>
          <Changes changes={others} />
        </>
      )}
      {children}
    </Section>
  );
}

const WORDS = { added: 'New', removed: 'Removed', changed: 'Changed' } as const;

function Changes({ changes }: { changes: readonly PlanChange[] }) {
  return (
    <ul>
      {changes.map((change) => (
        <li key={`${change.what} ${change.name}`}>
          <strong>{WORDS[change.change]}</strong>: {change.what === 'permission' ? '' : `${change.what} `}
          <code>{change.name}</code> {valuesOf(change)}
        </li>
      ))}
    </ul>
  );
}

function valuesOf({ change, before, after }: PlanChange): string {
  if (change === 'changed') return `${JSON.stringify(before)} → ${JSON.stringify(after)}`;
  const when = change === 'added' ? (after as { when?: string } | undefined)?.when : undefined;
  return when ?? '';
}
