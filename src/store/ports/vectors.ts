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
  /** Metadata values that a vector must have to be returned. */
  filter: VectorMetadata;
}

export interface VectorHit {
  id: string;
  /** Cosine similarity of the vector and the query, from -1 to 1. */
  score: number;
  metadata: VectorMetadata;
}

/**
 * Stores vectors by collection. The first vector of a collection sets its number of dimensions. Throws VALIDATION_ERROR
 * if a vector is zero or has a different number of dimensions.
 */
export interface VectorStore {
  /**
   * Writes vectors and returns their number. Throws QUOTA_EXCEEDED if all collections of the tenant in this namespace
   * would exceed `maxVectors` together.
   */
  upsert(key: CollectionKey, items: VectorRecord[], maxVectors: number): Promise<number>;
  /** Returns the nearest vectors first, or an empty list if the collection does not exist. */
  search(key: CollectionKey, query: VectorQuery): Promise<VectorHit[]>;
  /**
   * Deletes vectors and returns their number. When a collection becomes empty, its next vector can have a different
   * number of dimensions.
   */
  delete(key: CollectionKey, ids: string[]): Promise<number>;
  close(): Promise<void>;
}
