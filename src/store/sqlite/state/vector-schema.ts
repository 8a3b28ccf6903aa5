import type { Migrations } from '../migrate.ts';

/**
 * Collections and their items. The vectors are in one sqlite-vec table per number of dimensions
 * (`vector_384`), partitioned by collection so that a search reads only its own.
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

/** Migrations of `vectors.db`. */
export const VECTOR_MIGRATIONS: Migrations = [VECTORS];

/**
 * Vectors per chunk. sqlite-vec allocates whole chunks: 128 vectors waste little space in a small collection and read
 * as fast as 1,024.
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
