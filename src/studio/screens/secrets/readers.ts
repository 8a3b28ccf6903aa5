import type { WorkflowSummary } from '../../../contracts/workflows.ts';
import { call } from '../../api/call.ts';
import { useQuery, useResult } from '../../api/query.ts';

export type SecretWorkflow = WorkflowSummary & { secrets: NonNullable<WorkflowSummary['secrets']> };

export interface Readers {
  /** Plugins and workflows whose permissions name a secret. */
  of(name: string): string[];
  workflows: readonly SecretWorkflow[];
}

/** Returns what may read secrets, from the permissions of plugins and workflows. */
export function useReaders(): Readers {
  const plugins = useResult('getPlugin', 'secrets', pluginsWithSecrets).data ?? [];
  const all = useQuery('listWorkflows', {}).data?.items ?? [];
  const workflows = all.filter((workflow): workflow is SecretWorkflow => workflow.secrets !== undefined);
  return {
    workflows,
    of: (name) => [
      ...plugins.filter(({ secrets }) => secrets.includes(name)).map(({ id }) => `plugin ${id}`),
      ...workflows.filter(({ secrets }) => secrets.names.includes(name)).map(({ id }) => `workflow ${id}`),
    ],
  };
}

/** Reads the permissions of all plugins. The list of plugins does not contain them. */
async function pluginsWithSecrets(signal: AbortSignal): Promise<Array<{ id: string; secrets: unknown[] }>> {
  const { items } = await call('listPlugins', {}, { signal });
  const details = await Promise.all(
    items.map(({ id }) => call('getPlugin', { params: { pluginId: id as never } }, { signal })),
  );
  return details.flatMap(({ id, permissions: { secrets } }) =>
    Array.isArray(secrets) ? [{ id, secrets }] : [],
  );
}
