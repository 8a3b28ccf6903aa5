import { join } from 'node:path';
import { getLoadablePath } from 'sqlite-vec';
import { codeOf, messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import type { CollectionKey, VectorRecord, VectorStore } from '../../ports/index.ts';
import { openDatabase } from '../database.ts';
import { vectorRows } from './vector-rows.ts';
import { VECTOR_MIGRATIONS } from './vector-schema.ts';

const VECTORS_FILE = 'vectors.db';

/**
 * Opens `vectors.db`. Calls block the thread, so services use `threadedVectorStore` instead. A search compares all
 * vectors of a collection.
 */
export async function sqliteVectorStore({ dataDir }: { dataDir: string }): Promise<VectorStore> {
  const db = await openDatabase({
    file: join(dataDir, VECTORS_FILE),
    migrations: VECTOR_MIGRATIONS,
    extension: extensionPath(),
  });
  const rows = vectorRows(db);

  return {
    async upsert(key, items, maxVectors) {
      const { dimensions } = sameLength(items);
      for (const { id, vector } of items) requireFloat32(vector, `the vector of ${JSON.stringify(id)}`);
      return db.write(() => {
        const collection = rows.collection(scopeOf(key), key.collection, dimensions);
        requireDimensions(collection.dimensions, dimensions, key.collection);
        const added = items.filter((item) => rows.put(collection, item)).length;
        requireQuota(rows.count(scopeOf(key)), added, maxVectors);
        rows.grew(collection, added);
        return items.length;
      });
    },
    async search(key, query) {
      requireFloat32(query.vector, 'the vector');
      return db.read(() => {
        const collection = rows.find(scopeOf(key), key.collection);
        if (!collection) return [];
        requireDimensions(collection.dimensions, query.vector.length, key.collection);
        return rows.nearest(collection, query);
      });
    },
    delete(key, ids) {
      return db.write(() => {
        const collection = rows.find(scopeOf(key), key.collection);
        if (!collection) return 0;
        const removed = ids.filter((id) => rows.remove(collection, id)).length;
        rows.grew(collection, -removed);
        rows.deleteEmpty(collection);
        return removed;
      });
    },
    close: () => db.close(),
  };
}

/** Throws STORE_ERROR on platforms for which sqlite-vec has no binary, such as Alpine Linux. */
function extensionPath(): string {
  try {
    return getLoadablePath();
  } catch (error) {
    throw new PlatformError(
      'STORE_ERROR',
      `sqlite-vec has no binary for ${process.platform}-${process.arch} here, so ctx.vectorStore cannot be used: ${messageOf(error)}`,
      { details: { reason: codeOf(error) }, cause: error },
    );
  }
}

/** Encodes the tenant and the namespace as JSON, because both names can contain any separator character. */
function scopeOf({ tenant, namespace }: CollectionKey): string {
  return JSON.stringify([tenant, namespace]);
}

/** Throws VALIDATION_ERROR unless all vectors have the same number of dimensions. */
function sameLength([first, ...others]: VectorRecord[]): { dimensions: number } {
  const dimensions = first!.vector.length;
  const other = others.find(({ vector }) => vector.length !== dimensions);
  if (!other) return { dimensions };
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The vectors differ in length: ${JSON.stringify(first!.id)} has ${dimensions} dimensions, ${JSON.stringify(other.id)} has ${other.vector.length}.`,
  );
}

function requireDimensions(expected: number, given: number, collection: string): void {
  if (expected === given) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `The collection "${collection}" holds vectors of ${expected} dimensions, and this one has ${given}. Use a separate collection for each embedding model.`,
    { details: { collection, dimensions: expected, given } },
  );
}

/** Rejects zero vectors, whose cosine similarity is undefined, and values that overflow float32. */
function requireFloat32(vector: number[], what: string): void {
  const single = Float32Array.from(vector);
  if (single.every(Number.isFinite) && single.some((value) => value !== 0)) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `Vectors must be non-zero and fit float32: ${what} is all zeros or has a number out of range.`,
  );
}

function requireQuota(used: number, added: number, maxVectors: number): void {
  if (added === 0 || used + added <= maxVectors) return;
  throw new PlatformError(
    'QUOTA_EXCEEDED',
    `The plugin would have ${used + added} vectors; adapters.vectorStore.maxVectors allows ${maxVectors}. Delete some, or raise it.`,
    { details: { used, added, maxVectors } },
  );
}
