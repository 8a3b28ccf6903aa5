import type { ServiceName } from '../../../contracts/index.ts';
import { postgresUrlOf } from '../../../kit/config/store-url.ts';
import { openSharedPlugins as openStore } from '../../../store/open-store.ts';
import type { ObjectStore, SharedPluginStore } from '../../../store/ports/index.ts';
import type { Resources } from '../../define-daemon.ts';
import { createSecretAccess, storedSecrets } from '../access/secrets.ts';
import { Packages } from './packages.ts';
import { PluginCache } from './plugin-cache.ts';
import { type Following, PluginFollower } from './plugin-follower.ts';

/** Connection of a process to the plugins that all nodes share. */
export interface SharedPlugins {
  store: SharedPluginStore;
  packages: Packages;
  cache: PluginCache;
  follower: PluginFollower;
}

/**
 * Opens the shared plugins, and updates the files of this node. Must be called before the plugins are loaded. Returns
 * undefined with SQLite, because the plugins of a node are then in its lock file.
 */
export async function openSharedPlugins(
  service: ServiceName,
  resources: Resources,
  stack: AsyncDisposableStack,
): Promise<SharedPlugins | undefined> {
  const { config, env, dataDir, clock, logger, elsewhere } = resources;
  const postgresUrl = postgresUrlOf(config.store, env);
  if (postgresUrl === null) return undefined;
  const store = stack.adopt(await openStore(postgresUrl, { clock, logger, service }), (opened) =>
    opened.close(),
  );
  const packages = await openPackages(resources, store.objects, stack);
  const cache = new PluginCache({ dataDir, packages, label: service, clock, logger });
  const follower = new PluginFollower({ store: store.lock, cache, logger });
  await follower.prepare();
  // A marketplace removes leftovers at its start.
  if (elsewhere?.includes('marketplace')) cache.sweepLater();
  return { store, packages, cache, follower };
}

/** Follows changes by other processes until the stack is disposed. Must be called after all listeners are registered. */
export async function followPlugins(
  shared: SharedPlugins | undefined,
  following: Following,
  stack: AsyncDisposableStack,
): Promise<void> {
  if (!shared) return;
  stack.defer(() => shared.follower.close());
  await shared.follower.start(following);
}

/** Opens the packages in the configured bucket, or else in the database. Copied packages are always in the database. */
async function openPackages(
  resources: Resources,
  database: ObjectStore,
  stack: AsyncDisposableStack,
): Promise<Packages> {
  const { config, env } = resources;
  const { storage } = config.adapters;
  if (storage?.type !== 's3') return new Packages([database]);
  const { s3Objects } = await import('../../../store/s3/objects.ts');
  const stored = storedSecrets(resources, createSecretAccess(resources));
  const bucket = stack.adopt(await s3Objects(storage, env, stored), (opened) => opened.close());
  return new Packages([bucket, database], storage.maxObjectBytes);
}
