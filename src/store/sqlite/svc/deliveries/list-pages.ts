import { setImmediate as turn } from 'node:timers/promises';
import type { DeliveryCursor, DeliveryFilter, DeliveryPage, DeliveryRecord } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { TextIndex } from '../text-index/text-index.ts';
import { compareNewest, type DeliveryWalks, deliveryWalks, type WalkFilter } from './list-walk.ts';
import { containing, RowScan, SEARCHED_ROWS } from './row-scan.ts';
import type { DeliveryRows } from './rows.ts';
import { TextSearch } from './text-search.ts';

export interface ListOptions extends DeliveryFilter {
  limit: number;
  before?: DeliveryCursor | undefined;
  after?: DeliveryCursor | undefined;
}

const LISTING_POLL_MS = 50;

/**
 * Reads pages of deliveries in time order. After an upgrade, the list tables lack older deliveries for a few minutes.
 * Scans find these deliveries.
 */
export class DeliveryPages {
  readonly #db: Database;
  readonly #rows: DeliveryRows;
  readonly #texts: TextIndex;
  readonly #walks: DeliveryWalks;
  readonly #scan: RowScan;
  readonly #textSearch: TextSearch;
  /**
   * Returns the position below which rows might be missing from the list tables. The value is 0 if the tables are
   * complete.
   */
  readonly #listedFrom: () => number;

  constructor(db: Database, rows: DeliveryRows, texts: TextIndex) {
    this.#db = db;
    this.#rows = rows;
    this.#texts = texts;
    this.#walks = deliveryWalks(db);
    this.#scan = new RowScan(db, rows);
    this.#textSearch = new TextSearch(db, rows, this.#scan);
    const listedFrom = db.prepare<[], number>('select listed_from from delivery_progress').pluck();
    this.#listedFrom = () => listedFrom.get()!;
  }

  async list(namespaceId: string, options: ListOptions): Promise<DeliveryPage> {
    const { limit, after, search } = options;
    const filter: WalkFilter = { ...options, namespaceId };
    // The backfill adds the oldest rows last. A page that is sorted oldest first must therefore wait for the backfill.
    while (after && (await this.#db.read(this.#listedFrom)) > 0)
      await new Promise((resolve) => setTimeout(resolve, LISTING_POLL_MS));
    const candidates =
      search === undefined || after
        ? undefined
        : await this.#texts.search(namespaceId, { ...options, search });
    const places = candidates?.segments.length
      ? await this.#textSearch.find(filter, options, candidates, limit + 1)
      : await this.#withUnlisted(filter, options, limit + 1);
    return this.#page(places, limit);
  }

  async #withUnlisted(filter: WalkFilter, options: ListOptions, wanted: number): Promise<DeliveryCursor[]> {
    const listedFrom = await this.#db.read(this.#listedFrom);
    const places = await this.#listed(filter, options, wanted);
    if (listedFrom === 0) return places;
    const known = new Set(places.map(({ position }) => position));
    const others = await this.#scan.unlisted(filter, options, listedFrom, wanted);
    places.push(...others.filter(({ position }) => !known.has(position)));
    return places.sort(compareNewest);
  }

  async #listed(filter: WalkFilter, options: ListOptions, wanted: number): Promise<DeliveryCursor[]> {
    const { search, before, after } = options;
    const walk = await this.#db.read(() =>
      after ? this.#walks.open(filter, after, 'oldest') : this.#walks.open(filter, before, 'newest'),
    );
    const count = search === undefined ? wanted : SEARCHED_ROWS;
    const found: DeliveryCursor[] = [];
    for (;;) {
      const places = await this.#db.read(() => walk.next(count));
      found.push(...(await this.#db.read(() => containing(this.#rows, places, search))));
      if (found.length >= wanted || places.length < count) return found.slice(0, wanted);
      await turn();
    }
  }

  async #page(places: readonly DeliveryCursor[], limit: number): Promise<DeliveryPage> {
    const shown = places.slice(0, limit);
    const records = await this.#db.read(() => this.#rows.heads(shown.map(({ position }) => position)));
    const items: DeliveryRecord[] = shown.flatMap(({ position }) => records.get(position) ?? []);
    const last = shown.at(-1);
    return { items, next: places.length > limit && last ? last : null };
  }
}
