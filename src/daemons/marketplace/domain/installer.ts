import { join, resolve } from 'node:path';
import pLimit from 'p-limit';
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
import {
  type PluginDescriber,
  type PluginRegistry,
  pluginsFolder,
  readLockFile,
  readNotShared,
  type SandboxInForce,
} from '../../../plugins/index.ts';
import { KEEP_OLD_MS } from '../../plugin-runtime/shared/plugin-cache.ts';
import { parseSource, type Source } from '../sources/parse-source.ts';
import { createAnnounce } from './announce.ts';
import { type ChangeEvents, createChangeEvents } from './change-events.ts';
import { keptFolder, type PlanRequest, type Update } from './change-requests.ts';
import { type Agreed, whenAgreed, whyNotRun } from './consent.ts';
import { createDependents, type Dependents } from './dependents.ts';
import type { Lifecycle } from './lifecycle.ts';
import {
  createLockEntries,
  entryOf,
  type LockEntries,
  nothingToUpdate,
  requireInstalled,
  usedInPlace,
} from './lock-entries.ts';
import { planOf } from './plan.ts';
import { createPluginFolders, type PluginFolders, type Staged, type StageOptions } from './plugin-folders.ts';
import type { PluginLock } from './plugin-lock.ts';
import { requireSame } from './refusals.ts';

export interface InstallerDeps {
  projectDir: string;
  dataDir: string;
  describer: PluginDescriber;
  /** Files and folders to which no plugin gets access, in addition to `dataDir`. */
  secrets: readonly string[];
  authMode: PlatformConfig['auth']['mode'];
  /** The sandbox for the code of a plugin under validation. */
  sandbox: () => Promise<SandboxInForce>;
  /** Reads the plugins on disk. */
  load: () => Promise<PluginRegistry>;
  lifecycle: Lifecycle;
  lock: PluginLock;
  clock: Clock;
  logger: Logger;
  analytics: Analytics;
}

/**
 * Changes the set of plugins, one change at a time. The last step of each change replaces the list of plugins
 * atomically. @spec docs/plugins.md "Installing"
 */
export class Installer {
  readonly #deps: InstallerDeps;
  readonly #stopping = new AbortController();
  readonly #folders: PluginFolders;
  readonly #entries: LockEntries;
  readonly #dependents: Dependents;
  readonly #events: ChangeEvents;
  /** Runs changes one after another. */
  readonly #inTurn = pLimit(1);

  constructor(deps: InstallerDeps) {
    const { dataDir, describer, secrets, clock, load, lifecycle } = deps;
    this.#deps = deps;
    this.#folders = createPluginFolders(dataDir, describer, this.#stopping.signal, secrets);
    this.#entries = createLockEntries(deps.lock, clock);
    this.#dependents = createDependents(load);
    const announce = createAnnounce(deps.analytics, deps.logger);
    this.#events = createChangeEvents({ load, lifecycle, entries: this.#entries, announce });
  }

  /**
   * Returns the changes that an installation or update would make. Throws the errors that the installation or update
   * would throw.
   */
  plan(request: PlanRequest, tenantId: string): Promise<PluginPlan> {
    return this.#inTurn(() => this.#plan(request, tenantId));
  }

  install(source: string, agreed: Agreed, tenantId: string): Promise<string> {
    return this.#inTurn(() => this.#install(source, agreed, tenantId));
  }

  update(id: string, request: Update, tenantId: string): Promise<string> {
    return this.#inTurn(() => this.#update(id, request, tenantId));
  }

  uninstall(id: string): Promise<void> {
    return this.#change(() => this.#drop(id, 'installed'));
  }

  link(folder: string): Promise<string> {
    return this.#change(() => this.#link(folder));
  }

  unlink(id: string): Promise<void> {
    return this.#change(() => this.#drop(id, 'linked'));
  }

  setEnabled(id: string, enabled: boolean): Promise<void> {
    return this.#change(() => this.#setEnabled(id, enabled));
  }

  touch(): Promise<number> {
    return this.#inTurn(() => this.#deps.lock.touch());
  }

  /** Removes leftovers of interrupted installations. */
  sweep(): Promise<void> {
    const { dataDir, lock } = this.#deps;
    return this.#inTurn(() =>
      lock.inFolder(async () => {
        const lists = await Promise.all([this.#entries.read(), readLockFile(dataDir)]);
        const entries = lists.flatMap(({ plugins }) => Object.values(plugins));
        const kept = [...entries, ...(await readNotShared(dataDir))];
        await this.#folders.sweep(new Set(kept.map(({ folder }) => folder)));
      }),
    );
  }

  /** Cancels fetches in flight, which have not yet changed the set of plugins. */
  stop(): void {
    this.#stopping.abort(
      new PlatformError('SERVICE_UNAVAILABLE', 'The platform is stopping; no plugin was changed.'),
    );
  }

  #change<Result>(change: () => Promise<Result>): Promise<Result> {
    return this.#inTurn(() => this.#deps.lock.exclusive(change));
  }

  async #plan(
    { source, pluginId, runManifest, keepCode }: PlanRequest,
    tenantId: string,
  ): Promise<PluginPlan> {
    const { load, sandbox, projectDir, dataDir, authMode } = this.#deps;
    const lock = await this.#entries.read();
    const current = pluginId === undefined ? undefined : await this.#toUpdate(lock, pluginId);
    const parsed = parseSource(source ?? current!.source, projectDir);
    const reason = await whyNotRun({ runManifest }, sandbox);
    const keep = keepCode ? keptFolder(parsed, current, dataDir) : undefined;
    const options = { manifestNotRun: reason, handlersNotRun: reason, tenantId, keep };
    return this.#folders.withStaged(parsed, options, async ({ plugin, resolved }) => {
      if (pluginId !== undefined) requireSame(plugin, pluginId);
      await this.#dependents.requirePlace(plugin);
      const before = (await load()).find(plugin.id);
      const installed = before?.version ?? entryOf(lock, plugin.id)?.version ?? null;
      return planOf(plugin, { before, installed, source: parsed.text, resolved, authMode, reason });
    });
  }

  async #install(text: string, agreed: Agreed, tenantId: string): Promise<string> {
    const source = parseSource(text, this.#deps.projectDir);
    return this.#fetchThenChange(source, agreed, { tenantId }, async (staged) => {
      const { id } = staged.plugin;
      const lock = await this.#entries.read();
      await this.#dependents.requireAbsent(id, lock);
      await this.#dependents.requirePlace(staged.plugin);
      await this.#commit(staged, source, lock);
      return this.#events.added('installed', id);
    });
  }

  async #update(
    id: string,
    { source: text, keepCode, ...agreed }: Update,
    tenantId: string,
  ): Promise<string> {
    const entry = await this.#toUpdate(await this.#entries.read(), id);
    const source = parseSource(text ?? entry.source, this.#deps.projectDir);
    const keep = keepCode ? keptFolder(source, entry, this.#deps.dataDir) : undefined;
    return this.#fetchThenChange(source, agreed, { tenantId, keep }, async (staged) => {
      requireSame(staged.plugin, id);
      await this.#dependents.requirePlace(staged.plugin);
      const lock = await this.#entries.read();
      requireInstalled(lock, id);
      await this.#commit(staged, source, lock);
      return this.#events.added('updated', id);
    });
  }

  /** Fetches a source, which can take minutes, and only then keeps other nodes from changing the plugins. */
  async #fetchThenChange(
    source: Source,
    agreed: Agreed,
    staging: Pick<StageOptions, 'tenantId' | 'keep'>,
    change: (staged: Staged) => Promise<string>,
  ): Promise<string> {
    const { sandbox, lock } = this.#deps;
    return this.#folders.withStaged(
      source,
      { ...(await whenAgreed(agreed, sandbox)), ...staging },
      (staged) => lock.exclusive(() => change(staged)),
    );
  }

  async #link(path: string): Promise<string> {
    const { projectDir, lock: list } = this.#deps;
    await list.requireLinkable();
    const source = parseSource(resolve(projectDir, path), projectDir);
    if (source.kind !== 'folder') throw new PlatformError('VALIDATION_ERROR', `${path} is not a folder.`);
    const plugin = await this.#folders.requireSound(source.path);
    const lock = await this.#entries.read();
    if (entryOf(lock, plugin.id)?.origin !== 'linked') await this.#dependents.requireAbsent(plugin.id, lock);
    await this.#dependents.requirePlace(plugin);
    const entry = this.#entries.entryFor(plugin, usedInPlace('linked', plugin, path));
    await this.#entries.save(lock, entry);
    return this.#events.added('linked', plugin.id);
  }

  async #setEnabled(id: string, enabled: boolean): Promise<void> {
    const lock = await this.#entries.read();
    const entry = await this.#entryToSwitch(lock, id);
    if (entry.enabled === enabled && entryOf(lock, id)) return;
    if (!enabled) {
      await this.#dependents.requireUnneeded(id, 'disabled');
      await this.#events.runHook('onDisable', id, 'disabled');
    }
    await this.#entries.save(lock, { ...entry, enabled });
    if (enabled) await this.#events.runHook('onEnable', id, 'enabled');
    this.#events.announce(enabled ? 'enabled' : 'disabled', entry);
  }

  async #drop(id: string, origin: Exclude<PluginOrigin, 'project'>): Promise<void> {
    const lock = await this.#entries.read();
    await this.#dependents.requireOrigin(id, origin, lock);
    const entry = entryOf(lock, id)!;
    const reason = origin === 'linked' ? 'unlinked' : 'uninstalled';
    await this.#dependents.requireUnneeded(id, reason);
    await this.#events.runHook('onDisable', id, reason);
    await this.#entries.remove(lock, id);
    if (entry.origin === 'installed') this.#removeLater(entry.folder);
    this.#events.announce(reason, entry);
  }

  /** Moves a staged plugin to its final folder and commits the change. */
  async #commit({ plugin, resolved }: Staged, source: Source, lock: LockFile): Promise<void> {
    const { folder, integrity } = await this.#folders.place(plugin);
    await this.#deps.lock.keep(join(pluginsFolder(this.#deps.dataDir), folder), integrity);
    const before = entryOf(lock, plugin.id);
    const provenance = { origin: 'installed' as const, source: source.text, resolved, folder, integrity };
    await this.#entries.save(lock, this.#entries.entryFor(plugin, provenance, before?.enabled));
    if (before?.origin === 'installed' && before.folder !== folder) this.#removeLater(before.folder);
  }

  #removeLater(folder: string): void {
    const { clock, logger } = this.#deps;
    clock.after(KEEP_OLD_MS, () => {
      this.#inTurn(() => this.#removeUnused(folder)).catch((error) =>
        logger.warn('A replaced plugin could not be removed', { error }),
      );
    });
  }

  /** Removes a plugin folder, unless the lock file refers to the folder again. */
  async #removeUnused(folder: string): Promise<void> {
    const { plugins } = await this.#entries.read();
    if (Object.values(plugins).some((entry) => entry.folder === folder)) return;
    await this.#folders.remove(folder);
  }

  /**
   * Returns the lock file entry of the plugin to update. Throws CONFLICT for project plugins and linked plugins,
   * because such plugins have no installed copy.
   */
  async #toUpdate(lock: LockFile, id: string): Promise<LockEntry> {
    if (!entryOf(lock, id) && (await this.#deps.load()).find(id)) throw nothingToUpdate(id, 'project');
    return requireInstalled(lock, id);
  }

  /**
   * Returns the plugin's lock file entry. Creates an entry for a project plugin, because only lock file entries can
   * disable plugins.
   */
  async #entryToSwitch(lock: LockFile, id: string): Promise<LockEntry> {
    const entry = entryOf(lock, id);
    if (entry) return entry;
    const plugin = (await this.#deps.load()).require(id);
    return this.#entries.entryFor(plugin, usedInPlace('project', plugin, plugin.root));
  }
}
