import { join } from 'node:path';
import { upstreamIdentity } from '../../http/index.ts';
import { postgresUrlOf, redisUrlOf } from '../../kit/config/store-url.ts';
import { seconds } from '../../kit/time/duration.ts';
import { openRedisCache, openStateStore } from '../../store/open-store.ts';
import type { StateStore } from '../../store/ports/index.ts';
import { acquireOwnerLock } from '../../store/sqlite/index.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { createSecretAccess, storedSecrets } from '../plugin-runtime/access/secrets.ts';
import { createPoolMetrics } from '../postgres-metrics.ts';
import { createStateEntries, type StateEntries } from './domain/state-entries.ts';
import { createStoredObjects, type StoredObjects } from './domain/stored-objects.ts';
import { startSweeping } from './domain/sweeping.ts';
import { createVectorCollections, type VectorCollections } from './domain/vector-collections.ts';

/** Maximum time to wait for the lock of the data file. After a restart, the previous process might still be writing. */
const LOCK_WAIT_MS = seconds(5);

export interface StateServices extends DaemonServices {
  entries: StateEntries;
  objects: StoredObjects;
  vectors: VectorCollections;
}

/**
 * Opens the store. The lock of `state.db` also covers `vectors.db`, `vectors-index.db` and the files in `storage/`. Throws CONFLICT if
 * another process holds the lock.
 */
export async function stateServices(
  resources: Resources,
  stack: AsyncDisposableStack,
): Promise<StateServices> {
  const { dataDir, clock, logger, metrics, config, env, keys } = resources;
  const file = join(dataDir, 'state.db');
  stack.adopt(await acquireOwnerLock({ file, waitMs: LOCK_WAIT_MS, label: 'state' }), (lock) =>
    lock.release(),
  );
  const postgresUrl = postgresUrlOf(config.store, env);
  const store = stack.adopt(await openStateStore({ postgresUrl, dataDir, clock, logger }), (opened) =>
    opened.close(),
  );
  createPoolMetrics(metrics, store.monitor);
  const objects = stack.adopt(storedObjects(resources, store), (opened) => opened.close());
  stack.adopt(startSweeping({ store: store.entries, clock, logger }), (sweeping) => sweeping.stop());
  const redisUrl = redisUrlOf(config.cache, env);
  const cache =
    redisUrl === null
      ? undefined
      : stack.adopt(await openRedisCache(redisUrl, { clock, logger }), (opened) => opened.close()).entries;
  if (cache) stack.adopt(startSweeping({ store: cache, clock, logger }), (sweeping) => sweeping.stop());
  return {
    // An identity is required in every config profile. Otherwise, a plugin with network access could read the data of
    // all tenants.
    authenticate: upstreamIdentity({ internalSecret: keys.internalSecret, mode: 'required', logger }),
    probeStore: () => store.probe(),
    entries: createStateEntries({ store: store.entries, cache, quotas: config.state.quotas }),
    objects,
    vectors: createVectorCollections({ config: config.adapters.vectorStore, store: store.vectors }),
  };
}

function storedObjects(resources: Resources, store: StateStore) {
  const { config, env, random } = resources;
  return createStoredObjects({
    config: config.adapters.storage,
    async open(storage) {
      if (storage.type === 'files') return store.openObjects({ quotaBytes: storage.quotaBytes, random });
      const { s3Objects } = await import('../../store/s3/objects.ts');
      return s3Objects(storage, env, storedSecrets(resources, createSecretAccess(resources)));
    },
  });
}
