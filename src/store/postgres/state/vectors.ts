import type {
  CollectionKey,
  VectorHit,
  VectorIndex,
  VectorQuery,
  VectorRecord,
  VectorStore,
} from '../../ports/index.ts';
import {
  requireDimensions,
  requireFloat32,
  requireVectorQuota,
  requireVectors,
  vectorBytes,
  vectorScope,
} from '../../vector-rules.ts';
import type { PostgresDatabase } from '../database.ts';
import type { Sql } from '../named-sql.ts';
import { VectorReplica } from './vector-replica.ts';

interface Collection {
  id: number;
  dimensions: number;
  revision: number;
}

/** Distinguishes the lock of a scope from other advisory locks. */
const LOCK_SEED = 0x766563;
/** Rows of deleted vectors that a collection keeps in addition to the number of its vectors. */
const MAX_DELETED_ROWS = 1000;

/** Inserts or replaces vectors. `:vectors` holds the bytes of all vectors, one after the other. */
const UPSERT = `
  with given as (
    select id, metadata, substr(:vectors::bytea, ((n - 1) * :size::int + 1)::int, :size::int) as vector
    from unnest(:ids::text[], :metadata::text[]) with ordinality as item (id, metadata, n)),
  known as (
    select count(*) filter (where vector is not null) as present, count(*) filter (where vector is null) as deleted
    from svc.vector_item where collection = :collection and item_id = any(:ids::text[])),
  written as (
    insert into svc.vector_item (collection, item_id, revision, vector, metadata)
    select :collection, id, :revision, vector, metadata from given
    on conflict (collection, item_id) do update
      set revision = excluded.revision, vector = excluded.vector, metadata = excluded.metadata)
  update svc.vector_collection c
  set revision = :revision, items = items + :count::int - known.present, deleted = c.deleted - known.deleted
  from known where id = :collection
  returning :count::int - known.present as added`;

const DELETE = `
  with gone as (
    update svc.vector_item set revision = :revision, vector = null, metadata = ''
    where collection = :collection and item_id = any(:ids::text[]) and vector is not null
    returning 1),
  counted as (select count(*) as count from gone)
  update svc.vector_collection set revision = :revision, items = items - count, deleted = deleted + count
  from counted where id = :collection and count > 0
  returning items, deleted, count`;

/** Deletes the rows of deleted vectors. Indexes that have not read these rows are built again. */
const PRUNE = `
  with gone as (delete from svc.vector_item where collection = :collection and vector is null)
  update svc.vector_collection set deleted = 0, pruned = revision where id = :collection`;

/**
 * Vectors in PostgreSQL. Each node searches a local index, and first brings the index up to date. A search thus finds
 * all vectors that were acknowledged before the search, also by other nodes.
 */
export class PostgresVectors implements VectorStore {
  readonly #database: PostgresDatabase;
  readonly #replica: VectorReplica;

  constructor(database: PostgresDatabase, index: VectorIndex) {
    this.#database = database;
    this.#replica = new VectorReplica(database, index);
  }

  async upsert(key: CollectionKey, items: VectorRecord[], maxVectors: number): Promise<number> {
    const dimensions = requireVectors(items);
    // PostgreSQL cannot write a row twice in one statement. The last vector with the same id applies.
    const unique = [...new Map(items.map((item) => [item.id, item])).values()];
    const scope = vectorScope(key);
    await this.#database.transact(async (sql) => {
      await lockScope(sql, scope);
      const collection = (await find(sql, scope, key)) ?? (await create(sql, scope, key, dimensions));
      requireDimensions(collection.dimensions, dimensions, key.collection);
      const used = await usedBy(sql, scope);
      const [written] = await sql<{ added: number }>(UPSERT, {
        collection: collection.id,
        revision: collection.revision + 1,
        ids: unique.map(({ id }) => id),
        metadata: unique.map(({ metadata }) => JSON.stringify(metadata)),
        vectors: Buffer.concat(unique.map(({ vector }) => vectorBytes(vector))),
        size: dimensions * Float32Array.BYTES_PER_ELEMENT,
        count: unique.length,
      });
      requireVectorQuota(used, written!.added, maxVectors);
    });
    return items.length;
  }

  async search(key: CollectionKey, query: VectorQuery): Promise<VectorHit[]> {
    requireFloat32(query.vector, 'the vector');
    return this.#replica.search(key, query);
  }

  async delete(key: CollectionKey, ids: string[]): Promise<number> {
    const scope = vectorScope(key);
    const storable = ids.filter((id) => id.isWellFormed() && !id.includes('\0'));
    return this.#database.transact(async (sql) => {
      await lockScope(sql, scope);
      const collection = await find(sql, scope, key);
      if (!collection) return 0;
      const [left] = await sql<{ items: number; deleted: number; count: number }>(DELETE, {
        collection: collection.id,
        revision: collection.revision + 1,
        ids: storable,
      });
      if (!left) return 0;
      if (left.items === 0)
        await sql('delete from svc.vector_collection where id = :id', { id: collection.id });
      else if (left.deleted > left.items + MAX_DELETED_ROWS) await sql(PRUNE, { collection: collection.id });
      return left.count;
    });
  }

  close(): Promise<void> {
    return this.#replica.close();
  }
}

/**
 * Serializes the writes of a scope until the transaction ends. Concurrent writes thus cannot exceed the quota, and the
 * revisions of a collection become visible in order.
 */
async function lockScope(sql: Sql, scope: string): Promise<void> {
  await sql(`select pg_advisory_xact_lock(hashtextextended(:scope, ${LOCK_SEED}))`, { scope });
}

async function find(
  sql: Sql,
  scope: string,
  { collection: name }: CollectionKey,
): Promise<Collection | undefined> {
  const [found] = await sql<Collection>(
    'select id, dimensions, revision from svc.vector_collection where scope = :scope and name = :name',
    { scope, name },
  );
  return found;
}

async function create(
  sql: Sql,
  scope: string,
  { collection: name }: CollectionKey,
  dimensions: number,
): Promise<Collection> {
  const [created] = await sql<Collection>(
    `insert into svc.vector_collection (scope, name, dimensions) values (:scope, :name, :dimensions)
     returning id, dimensions, revision`,
    { scope, name, dimensions },
  );
  return created!;
}

async function usedBy(sql: Sql, scope: string): Promise<number> {
  const [row] = await sql<{ used: number }>(
    'select coalesce(sum(items), 0) as used from svc.vector_collection where scope = :scope',
    { scope },
  );
  return row!.used;
}
