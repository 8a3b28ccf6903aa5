import { systemClock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import { projectSecrets } from '../../plugins/index.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { joinMembers } from '../membership/join-members.ts';
import type { Membership } from '../membership/membership.ts';
import { PluginRuntime } from '../plugin-runtime/runtime.ts';
import {
  followPlugins,
  openSharedPlugins,
  type SharedPlugins,
} from '../plugin-runtime/shared/open-shared-plugins.ts';
import type { SourceWatch } from '../plugin-runtime/source-watch.ts';
import { type Catalogue, createCatalogue } from './domain/catalogue.ts';
import { Installer } from './domain/installer.ts';
import { createLifecycle } from './domain/lifecycle.ts';
import { localPluginLock } from './domain/plugin-lock.ts';
import { createReloadBroadcast } from './domain/reload-broadcast.ts';
import { SharedPluginLock } from './domain/shared-lock.ts';
import { watchFolders } from './domain/watched-folders.ts';
import { withMcpContainers } from './mcp-describer.ts';
import { digestOfProject } from './project-digest.ts';

const LIST_TIMEOUT_MS = seconds(10);

export interface MarketplaceServices extends DaemonServices {
  plugins: PluginRuntime;
  installer: Installer;
  /**
   * Reads the plugins on disk, after pending changes have reached every service. If that takes too long, returns the
   * plugins that this service has loaded.
   */
  readCatalogue: () => Promise<Catalogue>;
  watch: SourceWatch;
  /** Hosts that are allowed to install, update and remove plugins. */
  admins: readonly string[];
  /** Undefined with SQLite. */
  membership?: Membership;
}

/** Builds the services of the marketplace, and removes leftovers of interrupted installations. */
export async function marketplaceServices(
  resources: Resources,
  stack: AsyncDisposableStack,
): Promise<MarketplaceServices> {
  const { config, projectDir, dataDir, clock, logger, random, analytics } = resources;
  const nodes = await openSharedPlugins('marketplace', resources, stack);
  const membership = nodes && (await joinNodes(resources, nodes, stack));
  const plugins = stack.adopt(await PluginRuntime.open(resources, { reportsPlugins: true }), (opened) =>
    opened.close(),
  );
  const shared = nodes && membership && sharedLock(resources, nodes, membership);
  const load = () => plugins.read();
  const installer = new Installer({
    projectDir,
    dataDir,
    describer: withMcpContainers(resources, plugins, stack),
    sandbox: () => plugins.sandbox(),
    secrets: projectSecrets(resources),
    authMode: config.auth.mode,
    load,
    lifecycle: createLifecycle(plugins, logger, random.uuid),
    lock: shared ?? localPluginLock(dataDir, createReloadBroadcast(resources, plugins)),
    clock,
    logger,
    analytics,
  });
  await installer.sweep();
  const watch = stack.adopt(
    await watchFolders({
      ...{ projectDir, dataDir, patterns: config.plugins },
      ...{ installer, runtime: plugins, logger },
    }),
    (opened) => opened.close(),
  );
  if (membership) await followPlugins(nodes, { runtime: plugins, fence: membership.fence }, stack);
  async function readCatalogue(): Promise<Catalogue> {
    const isKnown = await withinTimeout(watch.check());
    return createCatalogue(isKnown ? await plugins.readBeside() : { registry: plugins.registry, kept: [] });
  }
  return {
    ...{ plugins, installer, readCatalogue, watch, admins: config.gateway.admins },
    ...(nodes && membership
      ? {
          membership,
          withdraw: () => membership.withdraw(),
          probeStore: () => nodes.store.probe(),
        }
      : {}),
  };
}

/** Registers this process as a member. Operators see in its release that the projects of nodes differ. */
async function joinNodes(
  resources: Resources,
  { store }: SharedPlugins,
  stack: AsyncDisposableStack,
): Promise<Membership> {
  const release = await digestOfProject(resources.projectDir, resources.config.plugins);
  return joinMembers(resources, store.members, { kind: 'marketplace', release, keys: null }, stack);
}

function sharedLock(
  { config, logger }: Resources,
  { store, packages, cache, follower }: SharedPlugins,
  membership: Membership,
): SharedPluginLock {
  return new SharedPluginLock({
    ...{ store: store.lock, packages, cache, follower, logger },
    hasOtherNodes: async () => config.cluster.enabled || (await membership.others()).length > 0,
  });
}

/**
 * Resolves with true when `done` resolves. Resolves with false if `done` takes too long, for example during an
 * installation.
 */
function withinTimeout(done: Promise<void>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = systemClock.after(LIST_TIMEOUT_MS, () => resolve(false));
    done.then(() => resolve(true), reject).finally(cancel);
  });
}
