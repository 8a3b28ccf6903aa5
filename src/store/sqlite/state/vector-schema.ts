import type { Migrations } from '../migrate.ts';

/**
 * Tables of collections and items. Each number of dimensions has its own sqlite-vec table, such as `vector_384`. Tables
 * are partitioned by collection, so that a search reads only one collection.
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

/** Local copy of vectors in PostgreSQL. Deleting the file is safe while the state service is stopped. */
export const VECTOR_INDEX_FILE = 'vectors-index.db';

/** Table of the last revision that the index has of a collection. */
const POSITIONS = `
  create table position (
    collection integer primary key references collection (id) on delete cascade,
    source text not null,
    revision integer not null
  ) strict;`;

export const VECTOR_INDEX_MIGRATIONS: Migrations = [VECTORS, POSITIONS];

/**
 * Number of vectors per chunk of sqlite-vec. Small chunks waste little space in small collections. Chunks of 1,024 are
 * not faster.
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
