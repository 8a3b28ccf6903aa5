import { postgresUrlOf } from '../../kit/config/store-url.ts';
import { systemClock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import { projectSecrets } from '../../plugins/index.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import type { Membership } from '../membership/membership.ts';
import { PluginRuntime } from '../plugin-runtime/runtime.ts';
import type { SourceWatch } from '../plugin-runtime/source-watch.ts';
import { type Catalogue, createCatalogue } from './domain/catalogue.ts';
import { Installer } from './domain/installer.ts';
import { createLifecycle } from './domain/lifecycle.ts';
import { localPluginLock } from './domain/plugin-lock.ts';
import { createReloadBroadcast } from './domain/reload-broadcast.ts';
import { watchFolders } from './domain/watched-folders.ts';
import { createSharedLock, followChanges, openSharedPlugins } from './open-shared-plugins.ts';

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
  /** Loads plugin changes by other nodes. Undefined with SQLite, as is this node's membership. */
  followNodes?: () => Promise<void>;
  membership?: Membership;
}

/** Builds the services of the marketplace, and removes leftovers of interrupted installations. */
export async function marketplaceServices(
  resources: Resources,
  stack: AsyncDisposableStack,
): Promise<MarketplaceServices> {
  const { config, env, projectDir, dataDir, clock, logger, random, analytics } = resources;
  const postgresUrl = postgresUrlOf(config.store, env);
  const nodes = postgresUrl === null ? undefined : await openSharedPlugins(resources, postgresUrl, stack);
  const plugins = stack.adopt(await PluginRuntime.open(resources, { reportsPlugins: true }), (opened) =>
    opened.close(),
  );
  const shared = nodes && createSharedLock(resources, nodes, plugins, stack);
  const load = () => plugins.read();
  const installer = new Installer({
    projectDir,
    dataDir,
    describer: plugins.describer,
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
  async function readCatalogue(): Promise<Catalogue> {
    const isKnown = await withinTimeout(watch.check());
    return createCatalogue(isKnown ? await plugins.readBeside() : { registry: plugins.registry, kept: [] });
  }
  return {
    ...{ plugins, installer, readCatalogue, watch, admins: config.gateway.admins },
    ...(nodes && shared
      ? {
          membership: nodes.membership,
          withdraw: () => nodes.membership.withdraw(),
          followNodes: () => followChanges(nodes, shared),
          probeStore: () => nodes.store.probe(),
        }
      : {}),
  };
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
