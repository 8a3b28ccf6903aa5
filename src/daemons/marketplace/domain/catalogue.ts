import { basename } from 'node:path';
import type { PluginDetail, PluginRecord } from '../../../contracts/index.ts';
import type { BrokenPlugin, LoadedPlugin, PluginRegistry } from '../../../plugins/index.ts';

/** The plugins of the project as the marketplace tells them. @spec docs/decisions.md "Marketplace records" */
export interface Catalogue {
  /** By id; what is broken is listed with its faults. */
  list(): PluginRecord[];
  /** Throws PLUGIN_NOT_FOUND. */
  detail(id: string): PluginDetail;
}

/** `load` reads the project anew: what it answers is what is on disk now, not what was at the daemon's start. */
export async function readCatalogue(load: () => Promise<PluginRegistry>): Promise<Catalogue> {
  const registry = await load();
  return {
    list: () =>
      [...registry.plugins.map(loadedRecord), ...registry.broken.map(brokenRecord)].sort((a, b) =>
        a.id < b.id ? -1 : a.id > b.id ? 1 : 0,
      ),
    detail(id) {
      const broken = registry.broken.find((entry) => entry.id === id);
      if (broken && !registry.find(id)) return { ...brokenRecord(broken), ...NO_CONTENTS };
      const plugin = registry.require(id);
      return { ...loadedRecord(plugin), ...contents(plugin) };
    },
  };
}

function loadedRecord({ id, version, root }: LoadedPlugin): PluginRecord {
  return { id, version, source: 'linked', enabled: true, status: 'loaded', faults: [], root };
}

/** A folder whose manifest does not even tell its id goes by the folder's name. */
function brokenRecord({ id, folder, faults }: BrokenPlugin): PluginRecord {
  return {
    id: id ?? basename(folder),
    version: null,
    source: 'linked',
    enabled: true,
    status: 'broken',
    faults: faults.map(({ code, path, message }) => ({ code, path, message })),
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
  permissions: {},
};

function contents({ manifest }: LoadedPlugin): Contents {
  const { display, webhooks, rest, commands, jobs, permissions } = manifest;
  return {
    display: { name: display?.name ?? null, description: display?.description ?? null },
    webhooks: webhooks.map(({ event, auth, multi, async }) => ({ event, auth: auth.type, multi, async })),
    routes: (rest?.routes ?? []).map(({ method, path, security }) => ({
      method,
      path: `/api${rest!.basePath}${path === '/' ? '' : path}`,
      security: [...(security ?? rest!.security ?? [])],
    })),
    commands: commands.map(described),
    jobs: jobs.map(described),
    permissions,
  };
}

function described({ id, description }: { id: string; description?: string | undefined }) {
  return { id, description: description ?? null };
}
