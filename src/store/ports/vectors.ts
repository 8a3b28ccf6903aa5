import type { VectorMetadata } from '../../contracts/index.ts';

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
  /** Cosine similarity of the vector and the query, from -1 to 1. */
  score: number;
  metadata: VectorMetadata;
}

/**
 * Vectors by collection. A collection's first vector sets its dimensions. Vectors with other dimensions and zero
 * vectors cause VALIDATION_ERROR. A write is atomic, and durable when its promise settles.
 */
export interface VectorStore {
  /**
   * Returns the number of written vectors. Throws QUOTA_EXCEEDED when the tenant's collections in this namespace would
   * hold more than `maxVectors` together.
   */
  upsert(key: CollectionKey, items: VectorRecord[], maxVectors: number): Promise<number>;
  /** Returns the nearest vectors first. A missing collection gives an empty list. */
  search(key: CollectionKey, query: VectorQuery): Promise<VectorHit[]>;
  /** Returns the number of deleted vectors. An empty collection accepts vectors of other dimensions again. */
  delete(key: CollectionKey, ids: string[]): Promise<number>;
  close(): Promise<void>;
}
