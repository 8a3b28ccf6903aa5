import type { Vectors } from './vector.ts';

// The entry's `unverified` says why there is none.
export const vectors: Vectors = async () => [];
