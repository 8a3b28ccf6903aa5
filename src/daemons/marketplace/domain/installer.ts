import { resolve } from 'node:path';
import type {
  LockEntry,
  LockFile,
  PlatformConfig,
  PluginOrigin,
  PluginPlan,
} from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Analytics } from '../../../kit/telemetry/analytics.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import {
  manifestDigest,
  type PluginDescriber,
  type PluginRegistry,
  type SandboxInForce,
  type ValidateOptions,
} from '../../../plugins/index.ts';
import { parseSource, type Source } from '../sources/parse-source.ts';
import { createAnnounce } from './announce.ts';
import { createDependents } from './dependents.ts';
import type { Lifecycle, LifecycleReason } from './lifecycle.ts';
import { createLockEntries, entryOf, nothingToUpdate, requireInstalled } from './lock-entries.ts';
import { changesBetween, codeWarnings, warningsOf } from './plan.ts';
import { createPluginFolders, type Staged } from './plugin-folders.ts';
import { requireAgreed, requireSame } from './refusals.ts';
import type { ReloadBroadcast } from './reload-broadcast.ts';

/**
 * Delay before a replaced folder is deleted: running calls finish first, and services must notice the lock
 * file.
 */
const KEEP_OLD_MS = minutes(2);

export interface InstallerDeps {
  projectDir: string;
  dataDir: string;
  describer: PluginDescriber;
  /** Files and folders besides `dataDir` that no plugin is granted. */
  secrets: readonly string[];
  authMode: PlatformConfig['auth']['mode'];
  /** The sandbox for the code of a plugin under validation. */
  sandbox: () => Promise<SandboxInForce>;
  /** Reads the plugins on disk. */
  load: () => Promise<PluginRegistry>;
  lifecycle: Lifecycle;
  broadcastReload: ReloadBroadcast;
  clock: Clock;
  logger: Logger;
  analytics: Analytics;
}

/** What the operator approved. */
export interface Agreed {
  /** Digest of the manifest in the plan. */
  manifestDigest?: string | undefined;
  /** Permits running a manifest module without the bubblewrap sandbox. */
  runManifest?: boolean | undefined;
}

export interface Installer {
  /** Throws the errors that an installation would. */
  plan(
    asked: { source?: string | undefined; pluginId?: string | undefined } & Pick<Agreed, 'runManifest'>,
  ): Promise<PluginPlan>;
  install(source: string, agreed: Agreed): Promise<string>;
  update(id: string, source: string | undefined, agreed: Agreed): Promise<string>;
  uninstall(id: string): Promise<void>;
  link(folder: string): Promise<string>;
  unlink(id: string): Promise<void>;
  setEnabled(id: string, enabled: boolean): Promise<void>;
  /** Makes every service reload the plugins. */
  touch(): Promise<number>;
  /** Removes leftovers of interrupted installations. */
  sweep(): Promise<void>;
  /** Cancels fetches in flight; they have changed nothing. */
  stop(): void;
}

/**
 * Changes the set of plugins, one change at a time. The lock file is replaced last and atomically: it is the
 * commit point of every change. @spec docs/plugins.md "Installing"
 */
export function createInstaller(deps: InstallerDeps): Installer {
  const { projectDir, dataDir, clock, logger, load } = deps;
  const stopping = new AbortController();
  const folders = createPluginFolders(dataDir, deps.describer, stopping.signal, deps.secrets);
  const entries = createLockEntries(dataDir, clock, deps.broadcastReload);
  const dependents = createDependents(load);
  const announce = createAnnounce(deps.analytics, logger);
  let last: Promise<unknown> = Promise.resolve();

  /** Serializes changes in call order. */
  function inTurn<Result>(run: () => Promise<Result>): Promise<Result> {
    const mine = last.then(run);
    last = mine.catch(() => {});
    return mine;
  }

  /** Moves a staged plugin into place and writes the lock file. */
  async function commit({ plugin, resolved }: Staged, source: Source, lock: LockFile): Promise<void> {
    const { folder, integrity } = await folders.place(plugin);
    const before = entryOf(lock, plugin.id);
    const provenance = { origin: 'installed' as const, source: source.text, resolved, folder, integrity };
    await entries.save(lock, entries.entryFor(plugin, provenance, before?.enabled));
    if (before?.origin === 'installed' && before.folder !== folder) removeLater(before.folder);
  }

  function removeLater(folder: string): void {
    clock.after(KEEP_OLD_MS, () => {
      void inTurn(async () => {
        const { plugins } = await entries.read();
        if (Object.values(plugins).some((entry) => entry.folder === folder)) return;
        await folders.remove(folder);
      }).catch((error) => logger.warn('A replaced plugin could not be removed', { error }));
    });
  }

  /** Why code without consent is not run; undefined with the bubblewrap sandbox. */
  async function whyNotRun({ runManifest = false }: Agreed): Promise<string | undefined> {
    if (runManifest) return undefined;
    const { mode, reason } = await deps.sandbox();
    return mode === 'bwrap' ? undefined : (reason ?? mode);
  }

  /** Handlers are loaded only once the manifest equals the approved one. */
  async function whenAgreed(agreed: Agreed): Promise<ValidateOptions> {
    return {
      manifestNotRun: await whyNotRun(agreed),
      agree: (manifest) => requireAgreed(manifestDigest(manifest), agreed.manifestDigest),
    };
  }

  /** Throws CONFLICT for a plugin that is not installed: a project or linked folder is always current. */
  async function toUpdate(lock: LockFile, id: string): Promise<LockEntry> {
    if (!entryOf(lock, id) && (await load()).find(id)) throw nothingToUpdate(id, 'project');
    return requireInstalled(lock, id);
  }

  async function drop(id: string, origin: Exclude<PluginOrigin, 'project'>): Promise<void> {
    const lock = await entries.read();
    await dependents.requireOrigin(id, origin, lock);
    const entry = entryOf(lock, id)!;
    const reason = origin === 'linked' ? 'unlinked' : 'uninstalled';
    await dependents.requireUnneeded(id, reason);
    await runHook('onDisable', id, reason);
    await entries.remove(lock, id);
    if (entry.origin === 'installed') removeLater(entry.folder);
    announce(reason, entry);
  }

  /** Runs a hook of the loaded plugin; broken and disabled plugins have none. */
  async function runHook(hook: 'onEnable' | 'onDisable', id: string, reason: LifecycleReason): Promise<void> {
    const plugin = (await load()).find(id);
    if (plugin) await deps.lifecycle(plugin, hook, reason);
  }

  async function announceChange(reason: LifecycleReason, id: string): Promise<string> {
    await runHook('onEnable', id, reason);
    const entry = entryOf(await entries.read(), id);
    if (entry) announce(reason, entry);
    return id;
  }

  /** A disabled project plugin needs a lock file entry. */
  async function entryToSwitch(lock: LockFile, id: string): Promise<LockEntry> {
    const entry = entryOf(lock, id);
    if (entry) return entry;
    const plugin = (await load()).require(id);
    const { root } = plugin;
    return entries.entryFor(plugin, {
      origin: 'project',
      source: root,
      resolved: root,
      folder: root,
      integrity: null,
    });
  }

  return {
    plan: ({ source, pluginId, runManifest }) =>
      inTurn(async () => {
        const lock = await entries.read();
        const current = pluginId === undefined ? undefined : await toUpdate(lock, pluginId);
        const parsed = parseSource(source ?? current!.source, projectDir);
        const reason = await whyNotRun({ runManifest });
        const options = { manifestNotRun: reason, handlersNotRun: reason };
        return folders.withStaged(parsed, options, async ({ plugin, resolved }) => {
          if (pluginId !== undefined) requireSame(plugin, pluginId);
          await dependents.requirePlace(plugin);
          const before = (await load()).find(plugin.id);
          return {
            id: plugin.id,
            version: plugin.version,
            installed: before?.version ?? entryOf(lock, plugin.id)?.version ?? null,
            source: parsed.text,
            resolved,
            manifestDigest: manifestDigest(plugin.manifest),
            changes: changesBetween(before?.manifest, plugin.manifest),
            warnings: [
              ...warningsOf(plugin.manifest, deps.authMode),
              ...codeWarnings(plugin.manifestModule, reason),
            ],
          };
        });
      }),

    install: (text, agreed) =>
      inTurn(async () => {
        const source = parseSource(text, projectDir);
        return folders.withStaged(source, await whenAgreed(agreed), async (staged) => {
          const { id } = staged.plugin;
          const lock = await entries.read();
          await dependents.requireAbsent(id, lock);
          await dependents.requirePlace(staged.plugin);
          await commit(staged, source, lock);
          return announceChange('installed', id);
        });
      }),

    update: (id, text, agreed) =>
      inTurn(async () => {
        const entry = await toUpdate(await entries.read(), id);
        const source = parseSource(text ?? entry.source, projectDir);
        return folders.withStaged(source, await whenAgreed(agreed), async (staged) => {
          requireSame(staged.plugin, id);
          await dependents.requirePlace(staged.plugin);
          const lock = await entries.read();
          requireInstalled(lock, id);
          await commit(staged, source, lock);
          return announceChange('updated', id);
        });
      }),

    uninstall: (id) => inTurn(() => drop(id, 'installed')),
    unlink: (id) => inTurn(() => drop(id, 'linked')),

    link: (path) =>
      inTurn(async () => {
        const source = parseSource(resolve(projectDir, path), projectDir);
        if (source.kind !== 'folder') throw new PlatformError('VALIDATION_ERROR', `${path} is not a folder.`);
        const plugin = await folders.requireSound(source.path);
        const lock = await entries.read();
        if (entryOf(lock, plugin.id)?.origin !== 'linked') await dependents.requireAbsent(plugin.id, lock);
        await dependents.requirePlace(plugin);
        const { root } = plugin;
        const provenance = {
          origin: 'linked' as const,
          source: path,
          resolved: root,
          folder: root,
          integrity: null,
        };
        await entries.save(lock, entries.entryFor(plugin, provenance));
        return announceChange('linked', plugin.id);
      }),

    setEnabled: (id, enabled) =>
      inTurn(async () => {
        const lock = await entries.read();
        const entry = await entryToSwitch(lock, id);
        if (entry.enabled === enabled && entryOf(lock, id)) return;
        if (!enabled) {
          await dependents.requireUnneeded(id, 'disabled');
          await runHook('onDisable', id, 'disabled');
        }
        await entries.save(lock, { ...entry, enabled });
        if (enabled) await runHook('onEnable', id, 'enabled');
        announce(enabled ? 'enabled' : 'disabled', entry);
      }),

    touch: () => inTurn(async () => entries.touch(await entries.read())),

    sweep: () =>
      inTurn(async () => {
        const { plugins } = await entries.read();
        const installed = Object.values(plugins).filter(({ origin }) => origin === 'installed');
        await folders.sweep(new Set(installed.map(({ folder }) => folder)));
      }),

    stop: () =>
      stopping.abort(
        new PlatformError('SERVICE_UNAVAILABLE', 'The platform is stopping; no plugin was changed.'),
      ),
  };
}
