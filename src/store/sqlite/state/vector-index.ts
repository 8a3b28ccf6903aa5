import { join } from 'node:path';
import type { CollectionKey, VectorIndex } from '../../ports/index.ts';
import { vectorScope } from '../../vector-rules.ts';
import { openDatabase } from '../database.ts';
import { extensionPath } from './vector-extension.ts';
import { vectorRows } from './vector-rows.ts';
import { VECTOR_INDEX_FILE, VECTOR_INDEX_MIGRATIONS } from './vector-schema.ts';

/** Opens `vectors-index.db`. Calls block the thread, so services use `threadedVectorIndex` instead. */
export async function sqliteVectorIndex({ dataDir }: { dataDir: string }): Promise<VectorIndex> {
  const db = await openDatabase({
    file: join(dataDir, VECTOR_INDEX_FILE),
    migrations: VECTOR_INDEX_MIGRATIONS,
    extension: extensionPath(),
    losable: true,
  });
  const rows = vectorRows(db);
  const position = db.prepare<[number], { source: string; revision: number }>(
    'select source, revision from position where collection = ?',
  );
  const move = db.prepare<[number, string, number]>(
    `insert into position (collection, source, revision) values (?, ?, ?)
     on conflict (collection) do update set source = excluded.source, revision = excluded.revision`,
  );
  const find = (key: CollectionKey) => rows.find(vectorScope(key), key.collection);

  return {
    position: (key) =>
      db.read(() => {
        const collection = find(key);
        return collection && position.get(collection.id);
      }),
    apply: (key, { source, revision, dimensions, written, deleted }) =>
      db.write(() => {
        const collection = rows.collection(vectorScope(key), key.collection, dimensions);
        for (const item of written) rows.put(collection, item);
        for (const id of deleted) rows.remove(collection, id);
        move.run(collection.id, source, revision);
      }),
    search: (key, query) =>
      db.read(() => {
        const collection = find(key);
        return collection ? rows.nearest(collection, query) : [];
      }),
    drop: (key) =>
      db.write(() => {
        const collection = find(key);
        if (collection) rows.drop(collection);
      }),
    close: () => db.close(),
  };
}
