import type { VectorMetadata } from '../../contracts/index.ts';

/** One collection of one plugin and one tenant. */
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
  /** Metadata values that must match. */
  filter: VectorMetadata;
}

export interface VectorHit {
  id: string;
  /** Cosine similarity. */
  score: number;
  metadata: VectorMetadata;
}

/**
 * Vectors by collection; the first vector of a collection sets its dimensions. A write is atomic, and durable
 * when its promise settles. Throws VALIDATION_ERROR for other dimensions and for zero vectors, STORE_ERROR
 * otherwise.
 */
export interface VectorStore {
  /** Throws QUOTA_EXCEEDED when tenant and namespace would exceed `maxVectors` over all collections. */
  upsert(key: CollectionKey, items: VectorRecord[], maxVectors: number): Promise<number>;
  /** Nearest first; empty when the collection does not exist. */
  search(key: CollectionKey, query: VectorQuery): Promise<VectorHit[]>;
  /** Returns the number deleted. A collection that becomes empty may take other dimensions. */
  delete(key: CollectionKey, ids: string[]): Promise<number>;
  close(): Promise<void>;
}
