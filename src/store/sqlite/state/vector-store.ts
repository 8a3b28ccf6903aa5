import { join } from 'node:path';
import type { VectorStore } from '../../ports/index.ts';
import {
  requireDimensions,
  requireFloat32,
  requireVectorQuota,
  requireVectors,
  vectorScope,
} from '../../vector-rules.ts';
import { openDatabase } from '../database.ts';
import { extensionPath } from './vector-extension.ts';
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
      const dimensions = requireVectors(items);
      return db.write(() => {
        const collection = rows.collection(vectorScope(key), key.collection, dimensions);
        requireDimensions(collection.dimensions, dimensions, key.collection);
        const added = items.filter((item) => rows.put(collection, item)).length;
        requireVectorQuota(rows.count(vectorScope(key)), added, maxVectors);
        rows.grew(collection, added);
        return items.length;
      });
    },
    async search(key, query) {
      requireFloat32(query.vector, 'the vector');
      return db.read(() => {
        const collection = rows.find(vectorScope(key), key.collection);
        if (!collection) return [];
        requireDimensions(collection.dimensions, query.vector.length, key.collection);
        return rows.nearest(collection, query);
      });
    },
    delete(key, ids) {
      return db.write(() => {
        const collection = rows.find(vectorScope(key), key.collection);
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
