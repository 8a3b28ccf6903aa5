import type { CollectionKey, VectorHit, VectorIndex, VectorQuery } from '../../ports/index.ts';
import { requireDimensions, vectorScope } from '../../vector-rules.ts';
import type { PostgresDatabase } from '../database.ts';

/** State of a collection in PostgreSQL. */
interface Collection {
  id: number;
  source: string;
  dimensions: number;
  revision: number;
  pruned: number;
}

/** How far the index has copied a collection. */
interface Copy {
  /** Source of the copy, or undefined while the copy is unknown or incomplete. */
  source?: string | undefined;
  revision: number;
  running?: Promise<void> | undefined;
}

interface Item {
  revision: number;
  id: string;
  /** Float32 numbers, or null for a deleted vector. */
  vector: Buffer | null;
  metadata: string;
}

/** Position between two rows of a collection, in the order of revisions and ids. */
type Cursor = Pick<Item, 'revision' | 'id'>;

interface Page {
  collection: Pick<Collection, 'revision' | 'pruned'>;
  items: Item[];
}

const ITEMS_PER_PAGE = 500;

/**
 * Identifies the collection and its history. The index is built again after a restore of the database, which changes
 * the file of the table, and after a failover, which changes the timeline.
 */
const SOURCE = `instance || '.' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
  || '.' || pg_relation_filenode('svc.vector_item')`;

const FIND = `
  select id, ${SOURCE} as source, dimensions, revision, pruned
  from svc.vector_collection where scope = $1 and name = $2`;

/** Reads the collection and its next items in one snapshot. A collection without further items has one row. */
const READ_PAGE = `
  select c.revision as "collectionRevision", c.pruned, i.revision, i.item_id as id, i.vector, i.metadata
  from svc.vector_collection c left join lateral (
    select revision, item_id, vector, metadata from svc.vector_item
    where collection = c.id and (revision, item_id) > ($2, $3)
    order by revision, item_id limit ${ITEMS_PER_PAGE}) i on true
  where c.id = $1 order by i.revision, i.item_id`;

/** Copies collections from PostgreSQL into a local index, and searches the index. */
export class VectorReplica {
  readonly #database: PostgresDatabase;
  readonly #index: VectorIndex;
  readonly #copies = new Map<string, Copy>();

  constructor(database: PostgresDatabase, index: VectorIndex) {
    this.#database = database;
    this.#index = index;
  }

  /** Searches the collection as of now or later. */
  async search(key: CollectionKey, query: VectorQuery): Promise<VectorHit[]> {
    const collection = await this.#find(key);
    if (!collection) return [];
    requireDimensions(collection.dimensions, query.vector.length, key.collection);
    const copy = this.#copyOf(key);
    if (!isCurrent(copy, collection)) {
      // A copy in progress can have started before this search. Its failure is reported to the searches that started it.
      await copy.running?.catch(() => {});
      if (!isCurrent(copy, collection)) await this.#update(key, copy);
    }
    // The index handles calls in order. Later changes thus cannot be half applied when this search runs.
    return this.#index.search(key, query);
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#copies.values()].map(({ running }) => running));
    await this.#index.close();
  }

  #copyOf(key: CollectionKey): Copy {
    const name = JSON.stringify([vectorScope(key), key.collection]);
    const known = this.#copies.get(name);
    if (known) return known;
    const copy: Copy = { revision: 0 };
    this.#copies.set(name, copy);
    return copy;
  }

  /** Brings the index up to date. Concurrent callers share one update. */
  #update(key: CollectionKey, copy: Copy): Promise<void> {
    copy.running ??= this.#copyAll(key, copy).finally(() => {
      copy.running = undefined;
    });
    return copy.running;
  }

  async #copyAll(key: CollectionKey, copy: Copy): Promise<void> {
    for (;;) {
      copy.source = undefined;
      const collection = await this.#find(key);
      if (!collection) return this.#index.drop(key);
      const start = await this.#startOf(key, collection);
      const revision = await this.#copyFrom(key, collection, start);
      if (revision === undefined) continue;
      Object.assign(copy, { source: collection.source, revision });
      return;
    }
  }

  /** Returns the last revision in the index. Empties an index that cannot be continued. */
  async #startOf(key: CollectionKey, collection: Collection): Promise<number> {
    const position = await this.#index.position(key);
    const continues =
      position?.source === collection.source &&
      position.revision <= collection.revision &&
      position.revision >= collection.pruned;
    if (continues) return position.revision;
    if (position) await this.#index.drop(key);
    return 0;
  }

  /**
   * Copies all changes after the revision `start`. Returns the revision of the complete copy, or undefined if the
   * collection was replaced or pruned meanwhile.
   */
  async #copyFrom(key: CollectionKey, collection: Collection, start: number): Promise<number | undefined> {
    const { id, source, dimensions, pruned } = collection;
    let next = this.#readPage(id, { revision: start + 1, id: '' });
    for (;;) {
      const page = await next;
      if (page?.collection.pruned !== pruned) return undefined;
      const last = page.items.length === ITEMS_PER_PAGE ? page.items.at(-1) : undefined;
      // The next page can have more items of the last revision.
      const revision = last ? Math.max(start, last.revision - 1) : page.collection.revision;
      const applied = this.#index.apply(key, { source, dimensions, revision, ...changesOf(page.items) });
      if (!last) return applied.then(() => revision);
      next = this.#readPage(id, last);
      await Promise.all([applied, next]);
    }
  }

  async #find({ collection, ...scope }: CollectionKey): Promise<Collection | undefined> {
    const { rows } = await this.#database.sql<Collection>(FIND, [
      vectorScope({ collection, ...scope }),
      collection,
    ]);
    return rows[0];
  }

  async #readPage(collection: number, after: Cursor): Promise<Page | undefined> {
    const { rows } = await this.#database.prepared<PageRow>('vector-page', READ_PAGE, [
      collection,
      after.revision,
      after.id,
    ]);
    const [first] = rows;
    if (!first) return undefined;
    const { collectionRevision: revision, pruned } = first;
    return { collection: { revision, pruned }, items: rows.filter(isItem) };
  }
}

interface PageRow extends Partial<Item> {
  collectionRevision: number;
  pruned: number;
}

function isItem(row: PageRow): row is PageRow & Item {
  return row.id !== null;
}

function isCurrent({ source, revision, running }: Copy, collection: Collection): boolean {
  return !running && source === collection.source && revision >= collection.revision;
}

function changesOf(items: Item[]) {
  return {
    written: items.flatMap(({ id, vector, metadata }) =>
      vector === null ? [] : [{ id, vector: numbersOf(vector), metadata: JSON.parse(metadata) }],
    ),
    deleted: items.filter(({ vector }) => vector === null).map(({ id }) => id),
  };
}

/** Copies the bytes, because the memory of a buffer is not aligned. */
function numbersOf(bytes: Buffer): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}
