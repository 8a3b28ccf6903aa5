import type { VectorMetadata } from '../../contracts/index.ts';

/** One collection of one plugin and one tenant. */
export interface VectorPlace {
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
  /** Values that the metadata must have. */
  filter: VectorMetadata;
}

export interface VectorHit {
  id: string;
  /** Cosine similarity. */
  score: number;
  metadata: VectorMetadata;
}

/**
 * Vectors by collection; each has the dimensions of its first one. A write is all or nothing, and durable when its
 * promise settles. Throws VALIDATION_ERROR for other dimensions and for a vector without a direction, STORE_ERROR.
 */
export interface VectorStore {
  /** Throws QUOTA_EXCEEDED where tenant and namespace would have more than `maxVectors` in all collections. */
  upsert(place: VectorPlace, items: VectorRecord[], maxVectors: number): Promise<number>;
  /** The nearest first; none where there is no such collection. */
  search(place: VectorPlace, query: VectorQuery): Promise<VectorHit[]>;
  /** How many there were. An empty collection forgets its dimensions. */
  delete(place: VectorPlace, ids: string[]): Promise<number>;
  close(): Promise<void>;
}
