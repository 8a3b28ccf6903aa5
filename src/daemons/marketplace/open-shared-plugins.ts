import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { messageOf } from '../../kit/errors/errors.ts';
import { findFolders, sourceDigest } from '../../plugins/index.ts';
import { openSharedPlugins as openStore } from '../../store/open-store.ts';
import type { ObjectStore, SharedPluginStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { ChangeFeed } from '../membership/change-feed.ts';
import { joinMembers } from '../membership/join-members.ts';
import type { Membership } from '../membership/membership.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { createReloadBroadcast } from './domain/reload-broadcast.ts';
import { Packages } from './domain/shared/packages.ts';
import { PluginCache } from './domain/shared/plugin-cache.ts';
import { SharedPluginLock } from './domain/shared/shared-lock.ts';

/** Connection of this node to the plugins that all nodes share, before its plugins are loaded. */
export interface SharedPlugins {
  store: SharedPluginStore;
  membership: Membership;
  feed: ChangeFeed;
  packages: Packages;
  cache: PluginCache;
}

/**
 * Joins the nodes that share their plugins, and updates the cache of this node. If no node has stored a list yet, the
 * plugins of this node become the list.
 */
export async function openSharedPlugins(
  resources: Resources,
  postgresUrl: string,
  stack: AsyncDisposableStack,
): Promise<SharedPlugins> {
  const { projectDir, dataDir, clock, logger, config } = resources;
  const store = stack.adopt(await openStore(postgresUrl, { clock, logger }), (opened) => opened.close());
  const release = await digestOfProject(projectDir, config.plugins);
  const joining = { kind: 'marketplace', release, keys: null } as const;
  const membership = await joinMembers(resources, store.members, joining, stack);
  const { staleMs } = config.auth;
  const feed = stack.adopt(
    await ChangeFeed.open({ store: store.feed, sharedAs: membership.fence, staleMs, clock, logger }),
    (opened) => opened.close(),
  );
  const packages = await openPackages(resources, store.objects, stack);
  const cache = new PluginCache(dataDir, packages);
  await publishFirst(store, cache);
  const lock = await store.lock.read();
  // The service starts with the earlier plugins and is not ready, because an operator can repair the list through it.
  if (lock)
    await cache
      .update(lock)
      .catch((error) =>
        logger.error(`The latest plugins cannot be loaded on this node: ${messageOf(error)}`, { error }),
      );
  return { store, membership, feed, packages, cache };
}

/** Creates the shared list. Changes by other nodes are loaded once `followChanges` is called. */
export function createSharedLock(
  resources: Resources,
  { store, membership, packages, cache }: SharedPlugins,
  runtime: PluginRuntime,
  stack: AsyncDisposableStack,
): SharedPluginLock {
  const { clock, logger, config } = resources;
  return stack.adopt(
    new SharedPluginLock({
      ...{ store: store.lock, cache, packages, runtime, clock, logger },
      fence: membership.fence,
      hasOtherNodes: async () => config.cluster.enabled || (await membership.others()).length > 0,
      broadcastReload: createReloadBroadcast(resources, runtime),
    }),
    (opened) => opened.close(),
  );
}

/**
 * Loads changes by other nodes. Must be called after the folders of interrupted installations are removed, because an
 * update creates such folders too. Resolves once this node is up to date.
 */
export function followChanges({ feed }: SharedPlugins, lock: SharedPluginLock): Promise<void> {
  // The feed does not wait for the update, which can take seconds.
  feed.follow('plugins', () => void lock.sync());
  return lock.sync();
}

async function publishFirst({ lock: store }: SharedPluginStore, cache: PluginCache): Promise<void> {
  const { revision } = await cache.read();
  if (revision === 0 || (await store.read())) return;
  await store.exclusive(async () => {
    if (!(await store.read())) await store.replace(await cache.publish());
  });
}

/** Opens the packages in the configured bucket, or else in the database. Copied packages are always in the database. */
async function openPackages(
  { config, env }: Resources,
  database: ObjectStore,
  stack: AsyncDisposableStack,
): Promise<Packages> {
  const { storage } = config.adapters;
  if (storage?.type !== 's3') return new Packages([database]);
  const { s3Objects } = await import('../../store/s3/objects.ts');
  const bucket = stack.adopt(await s3Objects(storage, env), (opened) => opened.close());
  return new Packages([bucket, database], storage.maxObjectBytes);
}

/** Returns a digest of the plugin folders of the project, by which operators see that nodes differ. */
async function digestOfProject(projectDir: string, patterns: string[]): Promise<string> {
  const { folders } = await findFolders(projectDir, patterns);
  const digests = await Promise.all(
    folders.map(async (root) => `${basename(root)} ${await sourceDigest(root)}`),
  );
  return createHash('sha256').update(digests.toSorted().join('\n')).digest('base64url');
}
