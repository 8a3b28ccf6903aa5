import type { VectorMetadata } from '../../contracts/index.ts';

/** Identifies a collection by tenant, namespace and name. */
export interface CollectionKey {
  tenant: string;
  namespace: string;
  collection: string;
}

export interface VectorRecord {
  id: string;
  vector: number[];
  metadata: VectorMetadata;
}

export interface VectorQuery {
  vector: number[];
  limit: number;
  minScore?: number | undefined;
  /** Only vectors whose metadata has all these values are returned. */
  filter: VectorMetadata;
}

export interface VectorHit {
  id: string;
  /** Cosine similarity of the vector to the query. */
  score: number;
  metadata: VectorMetadata;
}

/**
 * Vectors by collection; the first vector of a collection sets its dimensions. A write is atomic, and durable
 * when its promise settles. Throws VALIDATION_ERROR for other dimensions and for zero vectors, STORE_ERROR
 * otherwise.
 */
export interface VectorStore {
  /** Throws QUOTA_EXCEEDED when all collections of the tenant and namespace would exceed `maxVectors` together. */
  upsert(key: CollectionKey, items: VectorRecord[], maxVectors: number): Promise<number>;
  /** Returns the nearest vectors first, or nothing when the collection does not exist. */
  search(key: CollectionKey, query: VectorQuery): Promise<VectorHit[]>;
  /** Returns the number of deleted vectors. An empty collection accepts vectors of other dimensions again. */
  delete(key: CollectionKey, ids: string[]): Promise<number>;
  close(): Promise<void>;
}
