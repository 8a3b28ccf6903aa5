import { basename } from 'node:path';
import type { LockEntry, PluginDetail, PluginRecord } from '../../../contracts/index.ts';
import {
  type BrokenPlugin,
  type DisabledPlugin,
  type LoadedPlugin,
  type PluginRegistry,
  runningFrom,
} from '../../../plugins/index.ts';

/** The plugins of the project as the marketplace tells them. @spec docs/decisions.md "Marketplace records" */
export interface Catalogue {
  /** By id; what is broken is listed with its faults. */
  list(): PluginRecord[];
  /** Throws PLUGIN_NOT_FOUND. */
  record(id: string): PluginRecord;
  /** Throws PLUGIN_NOT_FOUND. */
  detail(id: string): PluginDetail;
}

/** `onDisk` is what there is now, `running` what the services run: a plugin that broke since runs on as it was. */
export function createCatalogue(onDisk: PluginRegistry, running: PluginRegistry): Catalogue {
  const broken = onDisk.broken.map((plugin) => ({ plugin, kept: keptOf(plugin) }));
  const records = [
    ...onDisk.plugins.map(loadedRecord),
    ...onDisk.disabled.map(disabledRecord),
    ...broken.map(({ plugin, kept }) => brokenRecord(plugin, kept)),
  ].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));

  /** Where another folder has the plugin, that one runs. */
  function keptOf(plugin: BrokenPlugin): LoadedPlugin | undefined {
    const found = runningFrom(running, plugin);
    return found && !onDisk.find(found.id) ? found : undefined;
  }

  function record(id: string): PluginRecord {
    const plugin = onDisk.find(id);
    if (plugin) return loadedRecord(plugin);
    // What is not loaded says why; who is asked for by no record at all is told what was likely meant.
    return records.find((entry) => entry.id === id) ?? loadedRecord(onDisk.require(id));
  }
  return {
    list: () => records,
    record,
    detail(id) {
      const plugin = onDisk.find(id) ?? broken.find(({ kept }) => kept?.id === id)?.kept;
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

/** A folder whose manifest does not even tell its id goes by what runs from it, else by the folder's name. */
function brokenRecord({ id, folder, faults, locked }: BrokenPlugin, kept?: LoadedPlugin): PluginRecord {
  return {
    id: id ?? kept?.id ?? basename(folder),
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
