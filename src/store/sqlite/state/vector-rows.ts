import type { VectorMetadata } from '../../../contracts/index.ts';
import type { VectorHit, VectorQuery, VectorRecord } from '../../ports/index.ts';
import { vectorBytes } from '../../vector-rules.ts';
import type { Database } from '../database.ts';
import { vectorTable } from './vector-schema.ts';

export interface Collection {
  id: number;
  dimensions: number;
}

/** Rows of `vectors.db`. Methods that change rows must run inside `db.write`. */
export interface VectorRows {
  find(scope: string, name: string): Collection | undefined;
  /** Returns the collection. A missing collection is created with the given dimensions. */
  collection(scope: string, name: string, dimensions: number): Collection;
  count(scope: string): number;
  /** Inserts or replaces a vector. Returns true when the vector is new. */
  put(collection: Collection, item: VectorRecord): boolean;
  /** Returns true when the vector existed. */
  remove(collection: Collection, itemId: string): boolean;
  grew(collection: Collection, by: number): void;
  deleteEmpty(collection: Collection): void;
  /** Deletes a collection with its vectors. */
  drop(collection: Collection): void;
  nearest(collection: Collection, query: VectorQuery): VectorHit[];
}

export function vectorRows(db: Database): VectorRows {
  const sql = statements(db);
  // Statements on vector tables cannot be prepared at the start, because these tables are created at runtime.
  const prepared = new Map<string, ReturnType<typeof db.prepare<unknown[]>>>();
  const on = ({ dimensions }: Collection, text: (table: string) => string) => {
    const statement = text(vectorTable(dimensions).name);
    if (!prepared.has(statement)) prepared.set(statement, db.prepare<unknown[]>(statement));
    return prepared.get(statement)!;
  };

  return {
    find: (scope, name) => sql.find.get(scope, name),
    collection(scope, name, dimensions) {
      const found = sql.find.get(scope, name);
      if (found) return found;
      db.prepare(vectorTable(dimensions).sql).run();
      sql.create.run(scope, name, dimensions);
      return sql.find.get(scope, name)!;
    },
    count: (scope) => sql.count.get(scope) ?? 0,
    put(collection, { id, vector, metadata }) {
      const text = JSON.stringify(metadata);
      const known = sql.itemId.get(collection.id, id);
      if (known !== undefined) {
        sql.changeItem.run(text, known);
        on(collection, (table) => `update ${table} set embedding = ? where rowid = ?`).run(
          vectorBytes(vector),
          BigInt(known),
        );
        return false;
      }
      const { lastInsertRowid } = sql.addItem.run(collection.id, id, text);
      on(collection, (table) => `insert into ${table} (rowid, collection, embedding) values (?, ?, ?)`).run(
        BigInt(lastInsertRowid),
        BigInt(collection.id),
        vectorBytes(vector),
      );
      return true;
    },
    remove(collection, id) {
      const known = sql.itemId.get(collection.id, id);
      if (known === undefined) return false;
      on(collection, (table) => `delete from ${table} where rowid = ?`).run(BigInt(known));
      sql.removeItem.run(known);
      return true;
    },
    grew: (collection, by) => void sql.grew.run(by, collection.id),
    deleteEmpty: ({ id }) => void sql.deleteEmpty.run(id),
    drop(collection) {
      on(
        collection,
        (table) => `delete from ${table} where rowid in (select id from item where collection = ?)`,
      ).run(collection.id);
      sql.drop.run(collection.id);
    },
    nearest(collection, query) {
      const { conditions, values } = filterOf(query.filter);
      const among =
        conditions === '' ? '' : `and rowid in (select id from item where collection = ? ${conditions})`;
      const found = on(
        collection,
        (table) => `
          select item.item_id as id, item.metadata, near.distance
          from (select rowid, distance from ${table}
                where embedding match ? and k = ? and collection = ? ${among}) as near
          join item on item.id = near.rowid order by near.distance, item.item_id`,
      ).all(
        vectorBytes(query.vector),
        query.limit,
        BigInt(collection.id),
        ...(among === '' ? [] : [collection.id, ...values]),
      ) as Array<{ id: string; metadata: string; distance: number }>;
      return found
        .map(({ id, metadata, distance }) => ({
          id,
          score: scoreOf(distance),
          metadata: JSON.parse(metadata),
        }))
        .filter(({ score }) => query.minScore === undefined || score >= query.minScore);
    },
  };
}

function statements(db: Database) {
  return {
    find: db.prepare<[string, string], Collection>(
      'select id, dimensions from collection where scope = ? and name = ?',
    ),
    create: db.prepare<[string, string, number]>(
      'insert into collection (scope, name, dimensions) values (?, ?, ?)',
    ),
    count: db
      .prepare<[string], number>('select coalesce(sum(items), 0) from collection where scope = ?')
      .pluck(),
    grew: db.prepare<[number, number]>('update collection set items = items + ? where id = ?'),
    deleteEmpty: db.prepare<[number]>('delete from collection where id = ? and items = 0'),
    drop: db.prepare<[number]>('delete from collection where id = ?'),
    itemId: db
      .prepare<[number, string], number>('select id from item where collection = ? and item_id = ?')
      .pluck(),
    addItem: db.prepare<[number, string, string]>(
      'insert into item (collection, item_id, metadata) values (?, ?, ?)',
    ),
    changeItem: db.prepare<[string, number]>('update item set metadata = ? where id = ?'),
    removeItem: db.prepare<[number]>('delete from item where id = ?'),
  };
}

/**
 * Converts a cosine distance to a similarity. The result is rounded, because float32 arithmetic yields slightly less
 * than 1 for equal vectors.
 */
function scoreOf(distance: number): number {
  return Math.min(1, Math.max(-1, Math.round((1 - distance) * 1e6) / 1e6));
}

/**
 * Returns one SQL condition per filter value. Each condition also compares the JSON type, because SQLite treats `true`
 * and `1` as equal.
 */
function filterOf(filter: VectorMetadata): { conditions: string; values: unknown[] } {
  const values: unknown[] = [];
  const conditions = Object.entries(filter).map(([key, value]) => {
    values.push(key);
    if (value === null || typeof value === 'boolean') return condition(`type = '${value}'`);
    values.push(value);
    const types = typeof value === 'string' ? "'text'" : "'integer', 'real'";
    return condition(`type in (${types}) and value = ?`);
  });
  return { conditions: conditions.join(' '), values };
}

function condition(test: string): string {
  return `and exists (select 1 from json_each(item.metadata) where key = ? and ${test})`;
}
