import type { Migrations } from '../migrate.ts';

/**
 * Tables of collections and items. Vectors are in separate sqlite-vec tables, one per number of dimensions
 * (`vector_384`). These tables are partitioned by collection, so that a search reads one collection.
 */
const VECTORS = `
  create table collection (
    id integer primary key autoincrement,
    scope text not null,
    name text not null,
    dimensions integer not null,
    items integer not null default 0,
    unique (scope, name)
  ) strict;
  create table item (
    id integer primary key autoincrement,
    collection integer not null references collection (id) on delete cascade,
    item_id text not null,
    metadata text not null,
    unique (collection, item_id)
  ) strict;`;

export const VECTOR_MIGRATIONS: Migrations = [VECTORS];

/**
 * Number of vectors per chunk, the unit in which sqlite-vec allocates space. Chunks of 128 waste little space in small
 * collections and read as fast as chunks of 1,024.
 */
const CHUNK = 128;

export function vectorTable(dimensions: number): { name: string; sql: string } {
  const name = `vector_${dimensions}`;
  return {
    name,
    sql: `create virtual table if not exists ${name} using vec0(
      collection integer partition key, embedding float[${dimensions}] distance_metric=cosine, chunk_size=${CHUNK})`,
  };
}
