import type { AdaptersConfig } from '../../../contracts/index.ts';
import { adapterMissing } from '../../../kit/adapter-missing.ts';
import type {
  VectorHit,
  VectorPlace,
  VectorQuery,
  VectorRecord,
  VectorStore,
} from '../../../store/ports/index.ts';

/**
 * Vectors of plugins and tenants. Throws ADAPTER_NOT_CONFIGURED without an adapter, and as VectorStore does.
 */
export interface VectorCollections {
  upsert(place: VectorPlace, items: VectorRecord[]): Promise<number>;
  search(place: VectorPlace, query: VectorQuery): Promise<VectorHit[]>;
  delete(place: VectorPlace, ids: string[]): Promise<number>;
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
    upsert: async (place, items) => store.upsert(place, items, required().maxVectors),
    search: async (place, query) => required() && store.search(place, query),
    delete: async (place, ids) => required() && store.delete(place, ids),
  };
}
