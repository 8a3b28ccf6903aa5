import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { CHUNK_BYTES } from '../postgres/state/objects.ts';
import { OBJECTS_FOLDER } from '../sqlite/index.ts';
import { storeError } from '../sqlite/store-error.ts';
import type { CopySource } from './source.ts';

/**
 * Row of an object in SQLite. The object's file has a generated name, because scope and key can contain almost any
 * character.
 */
interface ObjectRow {
  scope: string;
  key: string;
  file: string;
  bytes: number;
  modifiedAt: number;
}

/** Copies all objects with their bytes, and returns their number. Throws STORE_ERROR for a missing file. */
export async function copyObjects(client: pg.Client, source: CopySource): Promise<number> {
  if (!source.has('state.db')) return 0;
  const rows = source.rows(
    'state.db',
    'select scope, key, file, bytes, modified_at as modifiedAt from object',
  ) as unknown as Iterable<ObjectRow>;
  let count = 0;
  for (const row of rows) {
    await copyObject(client, source.folder, row);
    count++;
  }
  await client.query(
    'insert into svc.state_object_usage (scope, bytes) select scope, sum(bytes) from svc.state_object group by scope',
  );
  return count;
}

async function copyObject(client: pg.Client, folder: string, row: ObjectRow): Promise<void> {
  const path = join(folder, OBJECTS_FOLDER, row.file.slice(-2), row.file);
  const data = await readFile(path).catch((error: unknown) => {
    throw storeError(path, error);
  });
  await insertObject(client, row, data);
}

export async function insertObject(
  client: pg.Client,
  { scope, key, modifiedAt }: Pick<ObjectRow, 'scope' | 'key' | 'modifiedAt'>,
  data: Uint8Array,
): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    'insert into svc.state_object (scope, key, bytes, modified_at) values ($1, $2, $3, $4) returning id',
    [scope, key, data.byteLength, modifiedAt],
  );
  for (let n = 0; n * CHUNK_BYTES < data.byteLength; n++) {
    const chunk = data.subarray(n * CHUNK_BYTES, (n + 1) * CHUNK_BYTES);
    await client.query('insert into svc.state_object_chunk (object_id, n, data) values ($1, $2, $3)', [
      rows[0]!.id,
      n,
      chunk,
    ]);
  }
}
