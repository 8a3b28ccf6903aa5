import type { AdaptersConfig } from '../../../contracts/index.ts';
import { adapterMissing } from '../../../kit/errors/adapter-missing.ts';
import type {
  CollectionKey,
  VectorHit,
  VectorQuery,
  VectorRecord,
  VectorStore,
} from '../../../store/ports/index.ts';

/**
 * Vectors of plugins and tenants. All methods throw ADAPTER_NOT_CONFIGURED without an adapter, and the errors of
 * VectorStore.
 */
export interface VectorCollections {
  upsert(key: CollectionKey, items: VectorRecord[]): Promise<number>;
  search(key: CollectionKey, query: VectorQuery): Promise<VectorHit[]>;
  delete(key: CollectionKey, ids: string[]): Promise<number>;
}

export function createVectorCollections({
  config,
  store,
}: {
  config: AdaptersConfig['vectorStore'];
  store: VectorStore;
}): VectorCollections {
  function required(): NonNullable<AdaptersConfig['vectorStore']> {
    if (config === null) throw adapterMissing('vectorStore');
    return config;
  }
  return {
    upsert: async (key, items) => store.upsert(key, items, required().maxVectors),
    search: async (key, query) => required() && store.search(key, query),
    delete: async (key, ids) => required() && store.delete(key, ids),
  };
}
