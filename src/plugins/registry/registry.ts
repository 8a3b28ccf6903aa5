import type { LockEntry } from '../../contracts/index.ts';
import { nearest } from '../../kit/data/nearest.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import { type IntegrityOf, integrityOf, manifestDigest } from '../integrity.ts';
import { readLockFile } from '../lock-file.ts';
import { grantFaults } from '../sandbox/index.ts';
import { relate } from './conflicts-and-dependencies.ts';
import { findFolders } from './folders.ts';
import { checkHandlerFiles } from './handler-files.ts';
import { folderOf, openLocked } from './locked.ts';
import { readManifest } from './manifest-file.ts';
import { type EvaluateManifest, manifestCodeOf } from './manifest-module.ts';
import type { BrokenPlugin, DisabledPlugin, LoadedPlugin, PluginFault, PluginRegistry } from './types.ts';

export type {
  BrokenPlugin,
  DisabledPlugin,
  LoadedPlugin,
  PluginFault,
  PluginRegistry,
} from './types.ts';

export interface LoadPluginsOptions {
  /** Folder that contains `svc.config.json`. The patterns are relative to this folder. */
  projectDir: string;
  /** Folders, or glob patterns of folders, from `plugins` in the config. */
  patterns: string[];
  /**
   * Runs manifest modules in the sandbox. Without this function, plugins with a manifest module are reported as broken.
   */
  evaluate?: EvaluateManifest;
  /** Validates a plugin's settings. Called for each plugin with a `configSchema`. */
  checkConfig?: (plugin: LoadedPlugin) => Promise<PluginFault[]>;
  /** Validates a plugin's code. Called for each enabled plugin with a valid manifest and files. */
  checkCode?: (plugin: LoadedPlugin) => Promise<PluginFault[]>;
  /** Validates that the sandbox of this machine suffices. Called for each enabled plugin with a valid manifest. */
  checkSandbox?: (plugin: LoadedPlugin) => Promise<PluginFault[]>;
  /** Computes the digest of a folder. The default implementation reads all files of the folder. */
  integrity?: IntegrityOf;
  /** Path of the `.svc` folder. Its lock file lists installed, linked and disabled plugins. */
  dataDir?: string;
  /** Files and folders, in addition to `dataDir`, that plugins must not access. */
  secrets?: readonly string[];
}

/**
 * Loads the plugins from the config's folders, then the plugins from the lock file. Broken plugins are excluded and
 * reported with all faults. @spec Platform codes; Plugin enabled flag; docs/plugins.md
 */
export async function loadPlugins(options: LoadPluginsOptions): Promise<PluginRegistry> {
  const { projectDir, patterns, evaluate, dataDir, integrity = integrityOf } = options;
  const lock = dataDir === undefined ? {} : (await readLockFile(dataDir)).plugins;
  const found = await findFolders(projectDir, patterns);
  const read = [
    ...found.broken.map((broken): ReadFolder => ({ broken })),
    ...(await Promise.all(found.folders.map((folder) => loadFolder(folder, evaluate)))),
    ...(await Promise.all(
      Object.values(lock)
        .filter(({ origin }) => origin !== 'project')
        .map((entry) => loadLocked(entry, { dataDir: dataDir!, evaluate, integrity })),
    )),
  ];
  return assemble(await Promise.all(read.map((one) => checked(one, lock, options))), lock);
}

/**
 * Validates the requested file access, the settings and the code of a plugin. Returns a broken plugin if a check fails.
 */
async function checked(
  read: ReadFolder,
  lock: Readonly<Record<string, LockEntry>>,
  { checkConfig, checkCode, checkSandbox, dataDir, secrets = [] }: LoadPluginsOptions,
): Promise<ReadFolder> {
  const { plugin } = read;
  if (!plugin) return read;
  const isEnabled = (plugin.locked ?? projectEntry(lock, plugin.id))?.enabled ?? true;
  const { root, manifest } = plugin;
  const grants = dataDir === undefined ? [] : await grantFaults(root, manifest, { dataDir, secrets });
  const settings = manifest.configSchema ? await checkConfig?.(plugin) : undefined;
  const code = isEnabled ? await checkCode?.(plugin) : undefined;
  const sandbox = isEnabled ? await checkSandbox?.(plugin) : undefined;
  const faults = [...grants, ...(settings ?? []), ...(code ?? []), ...(sandbox ?? [])];
  if (faults.length === 0) return read;
  const { id, locked } = plugin;
  return { broken: { folder: root, id, faults, ...(locked ? { locked } : {}) } };
}

interface ReadFolder {
  plugin?: LoadedPlugin;
  broken?: BrokenPlugin;
}

/** Builds the registry. Plugins that are both disabled and broken are listed as disabled. */
function assemble(read: readonly ReadFolder[], lock: Readonly<Record<string, LockEntry>>): PluginRegistry {
  const disabled: DisabledPlugin[] = [];
  const candidates: LoadedPlugin[] = [];
  const unreadable: BrokenPlugin[] = [];
  for (const { plugin, broken } of read) {
    const id = plugin?.id ?? broken?.id;
    const locked = plugin?.locked ?? broken?.locked ?? projectEntry(lock, id);
    if (locked && !locked.enabled) {
      const { version, folder } = locked;
      disabled.push({ id: locked.id, version, folder: plugin?.root ?? broken?.folder ?? folder, locked });
    } else if (plugin) candidates.push(plugin);
    else if (broken) unreadable.push(broken);
  }
  const related = relate(candidates, unreadable);
  return createRegistry(related.plugins, [...unreadable, ...related.broken], disabled);
}

/**
 * Returns the lock file entry of a plugin that the config lists. Returns undefined if the lock file has no such entry.
 */
function projectEntry(
  lock: Readonly<Record<string, LockEntry>>,
  id: string | undefined,
): LockEntry | undefined {
  const entry = id !== undefined && Object.hasOwn(lock, id) ? lock[id] : undefined;
  return entry?.origin === 'project' ? entry : undefined;
}

async function loadLocked(
  entry: LockEntry,
  {
    dataDir,
    evaluate,
    integrity,
  }: { dataDir: string; evaluate: EvaluateManifest | undefined; integrity: IntegrityOf },
): Promise<ReadFolder> {
  const brokenAt = (folder: string, faults: PluginFault[]): ReadFolder => ({
    broken: { folder, id: entry.id, faults, locked: entry },
  });
  // The files of a disabled plugin are not read, because broken files can be the reason for the disabling.
  if (!entry.enabled) return brokenAt(folderOf(entry, dataDir), []);
  const { root, fault } = await openLocked(entry, dataDir, integrity);
  if (fault) return brokenAt(root, [fault]);
  const { plugin, broken } = await loadFolder(root, evaluate);
  if (!plugin) return brokenAt(root, broken?.faults ?? []);
  if (plugin.id === entry.id) {
    const fault = otherManifest(plugin, entry);
    return fault ? brokenAt(root, [fault]) : { plugin: { ...plugin, locked: entry } };
  }
  const message = `The folder holds the plugin ${plugin.id}, not ${entry.id}; unlink and link it again.`;
  return brokenAt(root, [{ code: 'INVALID_MANIFEST', path: 'id', message }]);
}

/** Returns a fault if the manifest from a manifest module differs from the approved manifest. */
function otherManifest(
  { manifest, manifestModule }: LoadedPlugin,
  { origin, manifestDigest: approved, source }: LockEntry,
): PluginFault | undefined {
  if (origin !== 'installed' || manifestModule === undefined || manifestDigest(manifest) === approved)
    return undefined;
  const message = `Its manifest, the module ${manifestModule}, differs from the approved one. Install it again: svc plugins install ${source}.`;
  return { code: 'INTEGRITY_MISMATCH', path: '', message };
}

async function loadFolder(root: string, evaluate?: EvaluateManifest): Promise<ReadFolder> {
  const { manifest, id, faults } = await readManifest(root, evaluate);
  const all = manifest ? await checkHandlerFiles(root, manifest) : faults;
  if (!manifest || all.length > 0) return { broken: { folder: root, ...(id ? { id } : {}), faults: all } };
  const manifestModule = await manifestCodeOf(root);
  const plugin = { id: manifest.id, version: manifest.version, root, manifest };
  return { plugin: manifestModule === undefined ? plugin : { ...plugin, manifestModule } };
}

export function createRegistry(
  plugins: readonly LoadedPlugin[],
  broken: readonly BrokenPlugin[],
  disabled: readonly DisabledPlugin[] = [],
): PluginRegistry {
  const byId = new Map(plugins.map((plugin) => [plugin.id, plugin]));

  function requirePlugin(id: string): LoadedPlugin {
    const plugin = byId.get(id);
    if (plugin) return plugin;
    throw notFound(id, byId.keys(), broken, disabled);
  }
  return {
    plugins,
    broken,
    disabled,
    find: (id) => byId.get(id),
    require: requirePlugin,
    requireWebhook(pluginId, event) {
      const plugin = requirePlugin(pluginId);
      const webhook = plugin.manifest.webhooks.find((declared) => declared.event === event);
      if (webhook) return { plugin, webhook };
      const meant = nearest(
        event,
        plugin.manifest.webhooks.map((declared) => declared.event),
      );
      throw new PlatformError(
        'WEBHOOK_NOT_FOUND',
        `The plugin ${pluginId} declares no webhook "${event}"${meant ? `; did you mean "${meant}"?` : '.'}`,
        { details: { pluginId, event } },
      );
    },
  };
}

function notFound(
  id: string,
  known: Iterable<string>,
  broken: readonly BrokenPlugin[],
  disabled: readonly DisabledPlugin[],
): PlatformError {
  if (disabled.some((plugin) => plugin.id === id)) {
    return new PlatformError(
      'PLUGIN_NOT_FOUND',
      `The plugin ${id} is disabled; enable it with \`svc plugins enable ${id}\`.`,
      { details: { pluginId: id, disabled: true } },
    );
  }
  const reasons = broken.find((plugin) => plugin.id === id)?.faults;
  if (reasons) {
    const [first] = reasons;
    const where = first?.path ? `${first.path}: ` : '';
    const more = reasons.length > 1 ? ` (and ${reasons.length - 1} more)` : '';
    return new PlatformError(
      'PLUGIN_NOT_FOUND',
      `The plugin ${id} is broken and was left out: ${where}${first?.message}${more}`,
      { details: { pluginId: id, faults: reasons } },
    );
  }
  const meant = nearest(id, known);
  return new PlatformError(
    'PLUGIN_NOT_FOUND',
    `There is no plugin "${id}"${meant ? `; did you mean "${meant}"?` : '; list all with "svc plugins list".'}`,
    { details: { pluginId: id } },
  );
}
