import { PlatformError } from '../kit/errors/errors.ts';
import { type CollectionKey, requireStorableKey, type VectorRecord } from './ports/index.ts';

/** Encodes the tenant and the namespace as JSON, because both names can contain any separator character. */
export function vectorScope({ tenant, namespace }: CollectionKey): string {
  return JSON.stringify([tenant, namespace]);
}

/** Returns the number of dimensions of all vectors. Throws VALIDATION_ERROR for a vector that cannot be stored. */
export function requireVectors(items: VectorRecord[]): number {
  const dimensions = sameLength(items);
  for (const { id, vector } of items) {
    requireStorableKey(id);
    requireFloat32(vector, `the vector of ${JSON.stringify(id)}`);
  }
  return dimensions;
}

function sameLength([first, ...others]: VectorRecord[]): number {
  const dimensions = first!.vector.length;
  const other = others.find(({ vector }) => vector.length !== dimensions);
  if (!other) return dimensions;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The vectors differ in length: ${JSON.stringify(first!.id)} has ${dimensions} dimensions, ${JSON.stringify(other.id)} has ${other.vector.length}.`,
  );
}

export function requireDimensions(expected: number, given: number, collection: string): void {
  if (expected === given) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The collection "${collection}" holds vectors of ${expected} dimensions, and this one has ${given}. Use a separate collection for each embedding model.`,
    { details: { collection, dimensions: expected, given } },
  );
}

/** Rejects zero vectors, whose cosine similarity is undefined, and values that overflow float32. */
export function requireFloat32(vector: ArrayLike<number>, what: string): void {
  const single = Float32Array.from(vector);
  if (single.every(Number.isFinite) && single.some((value) => value !== 0)) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `Vectors must be non-zero and fit float32: ${what} is all zeros or has a number out of range.`,
  );
}

/** Throws QUOTA_EXCEEDED if `added` new vectors do not fit beside the `used` ones. */
export function requireVectorQuota(used: number, added: number, maxVectors: number): void {
  if (added === 0 || used + added <= maxVectors) return;
  throw new PlatformError(
    'QUOTA_EXCEEDED',
    `The plugin would have ${used + added} vectors; adapters.vectorStore.maxVectors allows ${maxVectors}. Delete some, or raise it.`,
    { details: { used, added, maxVectors } },
  );
}

/** Returns the vector as float32 numbers in the byte order of the machine, which is little-endian. */
export function vectorBytes(vector: ArrayLike<number>): Buffer {
  return Buffer.from(Float32Array.from(vector).buffer);
}
