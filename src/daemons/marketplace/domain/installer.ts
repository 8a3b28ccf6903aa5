import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, realpath, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { LockEntry, LockFile, PluginId, PluginOrigin, PluginPlan } from '../../../contracts/index.ts';
import type { Analytics } from '../../../kit/analytics.ts';
import type { Clock } from '../../../kit/clock.ts';
import { minutes } from '../../../kit/duration.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import {
  integrityOf,
  type LoadedPlugin,
  manifestDigest,
  type PluginDescriber,
  type PluginFault,
  type PluginRegistry,
  pluginsFolder,
  readLockFile,
  relate,
  validatePlugin,
  writeLockFile,
} from '../../../plugins/index.ts';
import { fetchSource } from '../sources/fetch-source.ts';
import { parseSource, type Source } from '../sources/parse-source.ts';
import type { Lifecycle, LifecycleReason } from './lifecycle.ts';
import { changesBetween, warningsOf } from './plan.ts';

/** Until a replaced folder goes: calls that run on it finish first, and services look at the lock file. */
const KEEP_OLD_MS = minutes(2);
const STAGING = '.staging-';

export interface InstallerDeps {
  projectDir: string;
  dataDir: string;
  describer: PluginDescriber;
  /** The plugins as they are on disk now. */
  load: () => Promise<PluginRegistry>;
  lifecycle: Lifecycle;
  clock: Clock;
  logger: Logger;
  analytics: Analytics;
}

export interface Installer {
  /** Throws what an installation would throw. */
  plan(asked: { source?: string | undefined; pluginId?: string | undefined }): Promise<PluginPlan>;
  install(source: string, agreed?: string): Promise<string>;
  update(id: string, source: string | undefined, agreed?: string): Promise<string>;
  uninstall(id: string): Promise<void>;
  link(folder: string): Promise<string>;
  unlink(id: string): Promise<void>;
  setEnabled(id: string, enabled: boolean): Promise<void>;
  /** Has every service read the plugins anew. */
  touch(): Promise<number>;
  /** Removes what interrupted installations left behind. */
  sweep(): Promise<void>;
}

/** A plugin that was fetched and checked, and waits in a folder of its own. */
interface Staged {
  plugin: LoadedPlugin;
  resolved: string;
  workDir: string;
}

/**
 * Changes which plugins there are, one change at a time. The lock file is written last and in one step: before it
 * nothing has happened, after it everything has. @spec docs/plugins.md "Installing"
 */
export function createInstaller(deps: InstallerDeps): Installer {
  const { projectDir, dataDir, describer, clock, logger, analytics } = deps;
  const home = pluginsFolder(dataDir);
  let last: Promise<unknown> = Promise.resolve();

  /** Whoever comes meanwhile waits for those before. */
  function inTurn<Result>(run: () => Promise<Result>): Promise<Result> {
    const mine = last.then(run);
    last = mine.catch(() => {});
    return mine;
  }

  async function stage(source: Source): Promise<Staged> {
    const workDir = join(home, `${STAGING}${randomUUID()}`);
    const folder = join(workDir, 'plugin');
    await mkdir(workDir, { recursive: true, mode: 0o700 });
    try {
      const resolved = await fetchSource(source, folder, workDir);
      const plugin = await requireSound(folder);
      return { plugin, resolved, workDir };
    } catch (error) {
      await rm(workDir, { recursive: true, force: true });
      throw error;
    }
  }

  async function requireSound(folder: string): Promise<LoadedPlugin> {
    const { plugin, faults } = await validatePlugin(await realpath(folder), describer);
    if (plugin && faults.length === 0) return plugin;
    throw faulty(plugin?.id, faults);
  }

  /** Throws when the plugin could not run beside the others. */
  async function requirePlace(plugin: LoadedPlugin): Promise<void> {
    const registry = await deps.load();
    const others = registry.plugins.filter(({ id }) => id !== plugin.id);
    const { broken } = relate([...others, plugin], [...registry.broken]);
    const own = broken.find(({ id, folder }) => id === plugin.id && folder === plugin.root);
    if (own) throw faulty(plugin.id, own.faults);
    const lost = broken.find(({ id }) => others.some((other) => other.id === id));
    if (lost) throw faulty(lost.id, lost.faults);
  }

  async function withStaged<Result>(
    source: Source,
    use: (staged: Staged) => Promise<Result>,
  ): Promise<Result> {
    const staged = await stage(source);
    try {
      return await use(staged);
    } finally {
      await rm(staged.workDir, { recursive: true, force: true });
    }
  }

  /** Puts a staged plugin in its place and writes it down. */
  async function commit({ plugin, resolved }: Staged, source: Source, lock: LockFile): Promise<void> {
    const { id, version } = plugin;
    const integrity = await integrityOf(plugin.root);
    const folder = await place(plugin.root, folderName(id, version, integrity), integrity);
    const before = entryOf(lock, id);
    await save(lock, {
      id: id as PluginId,
      version,
      origin: 'installed',
      source: source.text,
      resolved,
      folder,
      integrity,
      installedAt: new Date(clock.now()).toISOString(),
      enabled: before?.enabled ?? true,
      manifestDigest: manifestDigest(plugin.manifest),
    });
    if (before?.origin === 'installed' && before.folder !== folder) removeLater(before.folder);
  }

  /** Moves a checked folder to where it stays. What is there already is in use: it is neither removed nor written over. */
  async function place(from: string, name: string, integrity: string): Promise<string> {
    const there = await integrityOf(join(home, name)).catch(() => undefined);
    if (there === integrity) return name;
    const isFree = !existsSync(join(home, name));
    const folder = isFree ? name : `${name}-${randomUUID().slice(0, 8)}`;
    await rename(from, join(home, folder));
    return folder;
  }

  async function save(lock: LockFile, entry: LockEntry): Promise<void> {
    await write(lock, { ...lock.plugins, [entry.id]: entry });
  }

  async function write({ revision }: LockFile, plugins: LockFile['plugins']): Promise<number> {
    await writeLockFile(dataDir, { version: 1, revision: revision + 1, plugins });
    return revision + 1;
  }

  function removeLater(folder: string): void {
    clock.after(KEEP_OLD_MS, () => {
      void inTurn(async () => {
        const { plugins } = await readLockFile(dataDir);
        if (Object.values(plugins).some((entry) => entry.folder === folder)) return;
        await rm(join(home, folder), { recursive: true, force: true });
      }).catch((error) => logger.warn('A replaced plugin could not be removed', { error }));
    });
  }

  async function drop(id: string, origin: Exclude<PluginOrigin, 'project'>): Promise<void> {
    const lock = await readLockFile(dataDir);
    const entry = entryOf(lock, id);
    if (entry?.origin !== origin) throw await notOurs(id, origin, entry);
    await requireUnneeded(id, origin === 'linked' ? 'unlinked' : 'uninstalled');
    await say('onDisable', id, origin === 'linked' ? 'unlinked' : 'uninstalled');
    const { [id]: _, ...rest } = lock.plugins;
    await write(lock, rest);
    if (entry.origin === 'installed') removeLater(entry.folder);
    tell(origin === 'linked' ? 'plugin.unlinked' : 'plugin.uninstalled', entry);
  }

  async function requireUnneeded(id: string, what: string): Promise<void> {
    const registry = await deps.load();
    const dependents = registry.plugins.filter(({ manifest }) => Object.hasOwn(manifest.dependencies, id));
    if (dependents.length === 0) return;
    const names = dependents.map((plugin) => plugin.id);
    throw new PlatformError(
      'CONFLICT',
      `${id} cannot be ${what}: ${names.join(', ')} ${names.length > 1 ? 'need' : 'needs'} it.`,
      { details: { dependents: names } },
    );
  }

  async function notOurs(
    id: string,
    wanted: PluginOrigin,
    entry: LockEntry | undefined,
  ): Promise<PlatformError> {
    const registry = await deps.load();
    const isProject = registry.find(id) !== undefined || registry.disabled.some((plugin) => plugin.id === id);
    if (!entry && !isProject) return unknown(id);
    const origin = entry?.origin ?? 'project';
    const hints: Record<PluginOrigin, string> = {
      installed: `\`svc plugins uninstall ${id}\` removes it`,
      linked: `\`svc plugins unlink ${id}\` lets go of it`,
      project: 'it lies in the project: remove its folder, or disable it',
    };
    return new PlatformError('CONFLICT', `${id} is ${origin}, not ${wanted}: ${hints[origin]}.`, {
      details: { pluginId: id, origin },
    });
  }

  /** @spec Analytics events: marketplace actions */
  function tell(event: string, { id, version, source, resolved }: LockEntry): void {
    analytics.track(`marketplace.${event}`, { runId: '', payload: { pluginId: id, version } });
    logger.diagnostic(
      {
        domain: 'plugins',
        event,
        level: 'info',
        reasonCode: event.replace('plugin.', '').toUpperCase(),
        message: `${event.replace('plugin.', '')}: ${id} ${version}`,
        outcome: 'succeeded',
        evidence: { version, source, resolved },
      },
      { pluginId: id },
    );
  }

  /** To the plugin as it is now; one that is broken or switched off has nothing to be told. */
  async function say(hook: 'onEnable' | 'onDisable', id: string, reason: LifecycleReason): Promise<void> {
    const plugin = (await deps.load()).find(id);
    if (plugin) await deps.lifecycle(plugin, hook, reason);
  }

  async function tellOf(reason: LifecycleReason, id: string): Promise<string> {
    await say('onEnable', id, reason);
    const entry = entryOf(await readLockFile(dataDir), id);
    if (entry) tell(`plugin.${reason}`, entry);
    return id;
  }

  return {
    plan: ({ source, pluginId }) =>
      inTurn(async () => {
        const lock = await readLockFile(dataDir);
        const current = pluginId === undefined ? undefined : requireInstalled(lock, pluginId);
        const parsed = parseSource(source ?? current!.source, projectDir);
        return withStaged(parsed, async ({ plugin, resolved }) => {
          if (pluginId !== undefined) requireSame(plugin, pluginId);
          await requirePlace(plugin);
          const before = (await deps.load()).find(plugin.id);
          return {
            id: plugin.id,
            version: plugin.version,
            installed: before?.version ?? entryOf(lock, plugin.id)?.version ?? null,
            source: parsed.text,
            resolved,
            manifestDigest: manifestDigest(plugin.manifest),
            changes: changesBetween(before?.manifest, plugin.manifest),
            warnings: warningsOf(plugin.manifest),
          };
        });
      }),

    install: (text, agreed) =>
      inTurn(() => {
        const source = parseSource(text, projectDir);
        return withStaged(source, async (staged) => {
          const { id, manifest } = staged.plugin;
          requireAgreed(manifestDigest(manifest), agreed);
          const lock = await readLockFile(dataDir);
          await requireAbsent(id, lock);
          await requirePlace(staged.plugin);
          await commit(staged, source, lock);
          return tellOf('installed', id);
        });
      }),

    update: (id, text, agreed) =>
      inTurn(async () => {
        const source = parseSource(
          text ?? requireInstalled(await readLockFile(dataDir), id).source,
          projectDir,
        );
        return withStaged(source, async (staged) => {
          requireSame(staged.plugin, id);
          requireAgreed(manifestDigest(staged.plugin.manifest), agreed);
          await requirePlace(staged.plugin);
          const lock = await readLockFile(dataDir);
          requireInstalled(lock, id);
          await commit(staged, source, lock);
          return tellOf('updated', id);
        });
      }),

    uninstall: (id) => inTurn(() => drop(id, 'installed')),
    unlink: (id) => inTurn(() => drop(id, 'linked')),

    link: (path) =>
      inTurn(async () => {
        const source = parseSource(resolve(projectDir, path), projectDir);
        if (source.kind !== 'folder') throw new PlatformError('VALIDATION_ERROR', `${path} is no folder.`);
        const plugin = await requireSound(source.path);
        const lock = await readLockFile(dataDir);
        if (entryOf(lock, plugin.id)?.origin !== 'linked') await requireAbsent(plugin.id, lock);
        await requirePlace(plugin);
        await save(lock, {
          id: plugin.id as PluginId,
          version: plugin.version,
          origin: 'linked',
          source: path,
          resolved: plugin.root,
          folder: plugin.root,
          integrity: null,
          installedAt: new Date(clock.now()).toISOString(),
          enabled: true,
          manifestDigest: manifestDigest(plugin.manifest),
        });
        return tellOf('linked', plugin.id);
      }),

    setEnabled: (id, enabled) =>
      inTurn(async () => {
        const lock = await readLockFile(dataDir);
        const registry = await deps.load();
        const entry = entryOf(lock, id) ?? projectEntry(registry.require(id), clock);
        if (entry.enabled === enabled && entryOf(lock, id)) return;
        if (!enabled) {
          await requireUnneeded(id, 'disabled');
          await say('onDisable', id, 'disabled');
        }
        await save(lock, { ...entry, enabled });
        if (enabled) await say('onEnable', id, 'enabled');
        tell(enabled ? 'plugin.enabled' : 'plugin.disabled', entry);
      }),

    touch: () =>
      inTurn(async () => {
        const lock = await readLockFile(dataDir);
        return write(lock, lock.plugins);
      }),

    sweep: () =>
      inTurn(async () => {
        const { plugins } = await readLockFile(dataDir);
        const kept = new Set(
          Object.values(plugins).flatMap(({ origin, folder }) => (origin === 'installed' ? [folder] : [])),
        );
        const found = await readdir(home).catch(() => []);
        for (const name of found.filter((folder) => !kept.has(folder)))
          await rm(join(home, name), { recursive: true, force: true });
      }),
  };

  async function requireAbsent(id: string, lock: LockFile): Promise<void> {
    const entry = entryOf(lock, id);
    const there = entry ?? (await deps.load()).find(id);
    if (!there) return;
    const mend = entry?.origin === 'installed' ? ` \`svc plugins update ${id}\` replaces it.` : '';
    throw new PlatformError(
      'PLUGIN_CONFLICT',
      `The plugin ${id} is there already, in version ${there.version} (${entry?.origin ?? 'project'}).${mend}`,
      { details: { pluginId: id, version: there.version } },
    );
  }
}

function entryOf(lock: LockFile, id: string): LockEntry | undefined {
  return Object.hasOwn(lock.plugins, id) ? lock.plugins[id] : undefined;
}

function requireInstalled(lock: LockFile, id: string): LockEntry {
  const entry = entryOf(lock, id);
  if (entry?.origin === 'installed') return entry;
  if (!entry) throw unknown(id);
  throw new PlatformError(
    'CONFLICT',
    `${id} is ${entry.origin}: its folder is used as it is, so there is nothing to update.`,
  );
}

function requireSame({ id }: LoadedPlugin, wanted: string): void {
  if (id === wanted) return;
  throw new PlatformError('CONFLICT', `The source holds the plugin ${id}, not ${wanted}.`, {
    details: { pluginId: wanted, found: id },
  });
}

/** What was shown must be what is installed, though the source may have changed in between. */
function requireAgreed(digest: string, agreed: string | undefined): void {
  if (agreed === undefined || agreed === digest) return;
  throw new PlatformError(
    'CONFLICT',
    'The source has changed since it was shown: its manifest is another one. Look at it again.',
    { details: { agreed, found: digest } },
  );
}

/** A disabled plugin of the project needs an entry that says so. */
function projectEntry({ id, version, root, manifest }: LoadedPlugin, clock: Clock): LockEntry {
  return {
    id: id as PluginId,
    version,
    origin: 'project',
    source: root,
    resolved: root,
    folder: root,
    integrity: null,
    installedAt: new Date(clock.now()).toISOString(),
    enabled: true,
    manifestDigest: manifestDigest(manifest),
  };
}

/** Another content is another folder, so that what runs is never written over. */
function folderName(id: string, version: string, integrity: string): string {
  const digest = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex').slice(0, 16);
  return `${id.replace('@', '').replace('/', '__')}-${version.replace(/[^\w.-]/g, '_')}-${digest}`;
}

function faulty(id: string | undefined, faults: readonly PluginFault[]): PlatformError {
  const told = faults.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  return new PlatformError(
    faults[0]?.code ?? 'INVALID_MANIFEST',
    `The plugin ${id ?? 'there'} cannot be used: ${told.join('; ')}`,
    { details: { ...(id === undefined ? {} : { pluginId: id }), faults } },
  );
}

function unknown(id: string): PlatformError {
  return new PlatformError(
    'PLUGIN_NOT_FOUND',
    `There is no plugin "${id}"; \`svc plugins list\` shows those there are.`,
    {
      details: { pluginId: id },
    },
  );
}
