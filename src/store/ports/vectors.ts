import type { VectorMetadata } from '../../contracts/index.ts';

export interface CollectionKey {
  tenant: string;
  namespace: string;
  collection: string;
}

export interface VectorRecord {
  id: string;
  vector: ArrayLike<number>;
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

/** Changes of a collection since an earlier revision. */
export interface VectorChanges {
  /** Identifies the copied collection. An index with another source must be dropped before. */
  source: string;
  /** Revision up to which the changes are complete. */
  revision: number;
  dimensions: number;
  written: VectorRecord[];
  deleted: string[];
}

/** Local copy of collections, which answers searches. The copy can be deleted at any time. */
export interface VectorIndex {
  /** Returns the last applied revision with its source, or undefined for an unknown collection. */
  position(key: CollectionKey): Promise<Pick<VectorChanges, 'source' | 'revision'> | undefined>;
  apply(key: CollectionKey, changes: VectorChanges): Promise<void>;
  search(key: CollectionKey, query: VectorQuery): Promise<VectorHit[]>;
  drop(key: CollectionKey): Promise<void>;
  close(): Promise<void>;
}
