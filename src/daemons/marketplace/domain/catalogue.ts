import { basename } from 'node:path';
import {
  type LockEntry,
  type ManifestV3,
  mcpCommandId,
  type PluginDetail,
  type PluginRecord,
  routeSecurity,
} from '../../../contracts/index.ts';
import {
  type BrokenPlugin,
  type DisabledPlugin,
  type Kept,
  type LoadedPlugin,
  selfStarting,
  workflowBriefs,
} from '../../../plugins/index.ts';

/** The project's plugins as the marketplace API lists them. @spec docs/plugins.md "Installing" */
export interface Catalogue {
  /** Returns the plugins ordered by id. Broken plugins are listed with their faults. */
  list(): PluginRecord[];
  /** Returns the list entry of a plugin. Throws PLUGIN_NOT_FOUND for an unknown id. */
  record(id: string): PluginRecord;
  /** Returns all details of a plugin. Throws PLUGIN_NOT_FOUND for an unknown id. */
  detail(id: string): PluginDetail;
}

/**
 * Combines the plugins on disk with the running plugins. A plugin that is broken on disk but keeps running has one
 * record with its faults.
 */
export function createCatalogue({ registry, kept }: Kept): Catalogue {
  const keptOf = (id: string | undefined) => kept.find((plugin) => plugin.id === id);
  const records = [
    ...registry.plugins.filter(({ id }) => !keptOf(id)).map(loadedRecord),
    ...registry.disabled.map(disabledRecord),
    ...registry.broken.map((plugin) => brokenRecord(plugin, keptOf(plugin.id))),
  ].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));

  function record(id: string): PluginRecord {
    const plugin = registry.find(id);
    if (plugin && !keptOf(id)) return loadedRecord(plugin);
    // The error of `require` for an unknown id suggests the most similar id.
    return records.find((entry) => entry.id === id) ?? loadedRecord(registry.require(id));
  }
  return {
    list: () => records,
    record,
    detail(id) {
      const plugin = registry.find(id);
      return { ...record(id), ...(plugin ? contents(plugin) : NO_CONTENTS) };
    },
  };
}

type Where = Pick<PluginRecord, 'origin' | 'source' | 'resolved' | 'integrity' | 'installedAt'>;

function whereFrom(locked: LockEntry | undefined, root: string): Where {
  if (!locked || locked.origin === 'project') {
    return { origin: 'project', source: root, resolved: null, integrity: null, installedAt: null };
  }
  const { origin, source, resolved, integrity, installedAt } = locked;
  return { origin, source, resolved, integrity, installedAt };
}

function loadedRecord({ id, version, root, locked }: LoadedPlugin): PluginRecord {
  const where = whereFrom(locked, root);
  return { id, version, ...where, enabled: true, status: 'loaded', faults: [], keptVersion: null, root };
}

function disabledRecord({ id, version, folder, locked }: DisabledPlugin): PluginRecord {
  const where = whereFrom(locked, folder);
  const rest = { faults: [], keptVersion: null, root: folder };
  return { id, version, ...where, enabled: false, status: 'disabled', ...rest };
}

/** Uses the name of the folder as the id if the id cannot be read. */
function brokenRecord({ id, folder, faults, locked }: BrokenPlugin, kept?: LoadedPlugin): PluginRecord {
  return {
    id: id ?? basename(folder),
    version: locked?.version ?? null,
    ...whereFrom(locked, folder),
    enabled: true,
    status: 'broken',
    faults: faults.map(({ code, path, message }) => ({ code, path, message })),
    keptVersion: kept?.version ?? null,
    root: folder,
  };
}

type Contents = Omit<PluginDetail, keyof PluginRecord>;

const NO_CONTENTS: Contents = {
  display: { name: null, description: null },
  webhooks: [],
  routes: [],
  commands: [],
  jobs: [],
  workflows: [],
  startsItself: [],
  permissions: {},
  mcpServer: null,
  manifestModule: null,
};

function contents({ manifest, manifestModule }: LoadedPlugin): Contents {
  const { display, webhooks, rest, commands, jobs, permissions } = manifest;
  return {
    display: { name: display?.name ?? null, description: display?.description ?? null },
    webhooks: webhooks.map(({ event, auth, multi, async }) => ({ event, auth: auth.type, multi, async })),
    routes: (rest?.routes ?? []).map(({ method, path, ...route }) => ({
      method,
      path: `/api${rest!.basePath}${path === '/' ? '' : path}`,
      security: [...(routeSecurity(rest!, route) ?? [])],
    })),
    commands: commands.map(described),
    jobs: jobs.map(described),
    workflows: workflowBriefs(manifest).map(({ id, name, isCode, isSound }) => ({
      id,
      name,
      code: isCode,
      refused: !isSound,
    })),
    startsItself: selfStarting(manifest),
    permissions,
    mcpServer: mcpServerOf(manifest),
    manifestModule: manifestModule ?? null,
  };
}

function mcpServerOf({ id, mcpServer }: ManifestV3): Contents['mcpServer'] {
  if (!mcpServer) return null;
  const { package: name = null, version = null, url = null, tools } = mcpServer;
  return {
    ...{ package: name, version, url },
    tools: tools.map((tool) => ({
      name: tool.name,
      command: mcpCommandId(id, tool.name),
      digest: tool.digest,
    })),
  };
}

function described({ id, description }: { id: string; description?: string | undefined }) {
  return { id, description: description ?? null };
}
