import type pg from 'pg';
import { vectorTable } from '../sqlite/state/vector-schema.ts';
import type { CopySource } from './source.ts';
import { columnsOf, insertRows } from './table-writer.ts';

interface Collection {
  id: number;
  scope: string;
  name: string;
  dimensions: number;
  items: number;
}

/** Vectors per revision. The index of a node reads the vectors of a revision as one batch. */
const ITEMS_PER_REVISION = 500;

/** Copies all collections with their vectors, and returns the number of vectors. */
export async function copyVectors(client: pg.Client, source: CopySource): Promise<number> {
  if (!source.has('vectors.db')) return 0;
  const columns = await columnsOf(client, 'vector_item');
  let count = 0;
  const collections = source.rows('vectors.db', 'select id, scope, name, dimensions, items from collection');
  for (const collection of [...collections] as unknown as Collection[]) {
    const id = await insertCollection(client, collection);
    count += await insertRows(client, 'vector_item', columns, rowsOf(source, collection, id));
  }
  return count;
}

async function insertCollection(
  client: pg.Client,
  { scope, name, dimensions, items }: Collection,
): Promise<number> {
  const revision = Math.ceil(items / ITEMS_PER_REVISION);
  const { rows } = await client.query<{ id: string }>(
    `insert into svc.vector_collection (scope, name, dimensions, items, revision)
     values ($1, $2, $3, $4, $5) returning id`,
    [scope, name, dimensions, items, revision],
  );
  return Number(rows[0]!.id);
}

function* rowsOf(
  source: CopySource,
  { id, dimensions }: Collection,
  collection: number,
): Generator<Record<string, unknown>> {
  const items = source.rows(
    'vectors.db',
    `select item_id, metadata, embedding as vector from item
     join ${vectorTable(dimensions).name} as stored on stored.rowid = item.id
     where item.collection = :id order by item.id`,
    { id },
  );
  let copied = 0;
  for (const item of items)
    yield { ...item, collection, revision: Math.floor(copied++ / ITEMS_PER_REVISION) + 1 };
}
