import { setImmediate as turn } from 'node:timers/promises';
import type { DeliveryCursor, DeliveryFilter, DeliveryPage, DeliveryRecord } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { TextCandidates } from '../text-index/search.ts';
import type { TextIndex } from '../text-index/text-index.ts';
import type { DeliveryFacts, DeliveryRows } from './rows.ts';
import { compareNewest, deliveryWalks, type WalkFilter } from './walk.ts';

export interface ListOptions extends DeliveryFilter {
  limit: number;
  before?: DeliveryCursor | undefined;
  after?: DeliveryCursor | undefined;
}

/** Rows scanned per event-loop turn, with and without reading bodies: some milliseconds each. */
const SEARCHED_ROWS = 250;
const SCANNED_ROWS = 1000;
/** Upper bound between receiving and writing a delivery; follows from the request timeouts. */
const MAX_WRITE_DELAY_MS = 10 * 60_000;
const WAIT_FOR_LISTING_MS = 50;
/** Candidates whose text is compared at a time. */
const VERIFIED_ROWS = 64;
const MAX_TURN_MS = 5;

/**
 * Pages of deliveries in strict time order. Rows not yet in the list tables, in the minutes after an upgrade,
 * are scanned in bounded batches: slower, but as exact.
 */
export function deliveryPages(db: Database, rows: DeliveryRows, texts: TextIndex) {
  const walks = deliveryWalks(db);
  const sql = statements(db);

  /** Filters `places` by the search text. */
  const holding = (places: readonly DeliveryCursor[], search: string | undefined): DeliveryCursor[] => {
    if (search === undefined || places.length === 0) return [...places];
    const found = new Set(
      rows.holding(
        places.map(({ position }) => position),
        search,
      ),
    );
    return places.filter(({ position }) => found.has(position));
  };

  async function listed(filter: WalkFilter, options: ListOptions, wanted: number): Promise<DeliveryCursor[]> {
    const { search, before, after } = options;
    const walk = await db.read(() =>
      after ? walks.open(filter, after, 'oldest') : walks.open(filter, before, 'newest'),
    );
    const count = search === undefined ? wanted : SEARCHED_ROWS;
    const found: DeliveryCursor[] = [];
    for (;;) {
      const places = await db.read(() => walk.next(count));
      found.push(...(await db.read(() => holding(places, search))));
      if (found.length >= wanted || places.length < count) return found.slice(0, wanted);
      await turn();
    }
  }

  /** The first row that was certainly written after everything received by `time`. */
  function writtenBehind(time: number, end: number): number {
    let [low, high] = [0, end];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const row = sql.firstFrom.get(middle, end);
      if (!row || row.receivedAt > time + MAX_WRITE_DELAY_MS) high = middle;
      else low = row.position + 1;
    }
    return low;
  }

  /** Matching rows before `end`, which are not in the list tables yet. */
  async function unlisted(
    filter: WalkFilter,
    options: ListOptions,
    end: number,
    wanted: number,
  ): Promise<DeliveryCursor[]> {
    const { before, search } = options;
    const scan = search === undefined ? SCANNED_ROWS : SEARCHED_ROWS;
    let found: DeliveryCursor[] = [];
    let position = before ? await db.read(() => writtenBehind(before.receivedAt, end)) : end;
    for (;;) {
      const batch = await db.read(() => rows.rowsBefore(filter.namespaceId, position, scan));
      const last = batch.at(-1);
      if (!last) return found;
      const matching = batch.filter(
        (row) => matches(row, filter) && (!before || compareNewest(before, row) < 0),
      );
      found.push(...(await db.read(() => holding(matching, search))));
      found = found.sort(compareNewest).slice(0, wanted);
      if (found.length === wanted && found.at(-1)!.receivedAt > last.receivedAt + MAX_WRITE_DELAY_MS)
        return found;
      position = last.position;
      await turn();
    }
  }

  /** Matching rows after the last segment, which the text index does not cover yet. */
  async function unindexed(filter: WalkFilter, indexedUntil: number): Promise<DeliveryCursor[]> {
    const found: DeliveryCursor[] = [];
    for (let position = Number.MAX_SAFE_INTEGER; ; ) {
      const batch = await db.read(() => rows.rowsBefore(filter.namespaceId, position, SCANNED_ROWS));
      found.push(...batch.filter((row) => row.position > indexedUntil && matches(row, filter)));
      position = batch.at(-1)?.position ?? 0;
      if (batch.length < SCANNED_ROWS || position <= indexedUntil) return found;
      await turn();
    }
  }

  /** Verifies candidates in order; opens a segment once all newer candidates have been verified. */
  async function searched(
    filter: WalkFilter,
    { before, search }: ListOptions,
    { segments, of }: TextCandidates,
    wanted: number,
  ): Promise<DeliveryCursor[]> {
    const isBehind = (place: DeliveryCursor): boolean => !before || compareNewest(before, place) < 0;
    const indexedUntil = Math.max(...segments.map(({ last }) => last));
    const closed = segments.filter(
      ({ newestAt, oldestAt }) =>
        newestAt >= (filter.since ?? 0) && (!before || oldestAt <= before.receivedAt),
    );
    let pool = (await unindexed(filter, indexedUntil)).filter(isBehind).sort(compareNewest);
    const found: DeliveryCursor[] = [];
    const rest = pacer();
    while (found.length < wanted) {
      const newest = closed[0]?.newestAt ?? -1;
      const chunk = pool.slice(0, VERIFIED_ROWS).filter(({ receivedAt }) => receivedAt > newest);
      if (chunk.length > 0) {
        pool = pool.slice(chunk.length);
        const positions = chunk.map(({ position }) => position);
        const facts = await db.read(() => rows.facts(filter.namespaceId, positions));
        const matching = facts.filter((row) => matches(row, filter)).sort(compareNewest);
        found.push(...(await db.read(() => holding(matching, search))));
      } else {
        const segment = closed.shift();
        if (!segment) break;
        const opened = (await db.read(() => of(segment))).filter(isBehind);
        if (opened.length > 0) pool = [...pool, ...opened].sort(compareNewest);
      }
      await rest();
    }
    return found.slice(0, wanted);
  }

  async function list(namespaceId: string, options: ListOptions): Promise<DeliveryPage> {
    const { limit, after } = options;
    const filter: WalkFilter = { ...options, namespaceId };
    // Oldest first would start with rows that are not listed yet.
    while (after && (await db.read(() => sql.listedFrom.get()!.position)) > 0)
      await new Promise((resolve) => setTimeout(resolve, WAIT_FOR_LISTING_MS));
    const { search } = options;
    const candidates =
      search === undefined || after ? undefined : await texts.search(namespaceId, { ...options, search });
    const listedFrom = await db.read(() => sql.listedFrom.get()!.position);
    const places = candidates?.segments.length
      ? await searched(filter, options, candidates, limit + 1)
      : await listed(filter, options, limit + 1);
    if (!candidates?.segments.length && listedFrom > 0) {
      const known = new Set(places.map(({ position }) => position));
      const others = await unlisted(filter, options, listedFrom, limit + 1);
      places.push(...others.filter(({ position }) => !known.has(position)));
      places.sort(compareNewest);
    }
    const shown = places.slice(0, limit);
    const records = await db.read(() => rows.heads(shown.map(({ position }) => position)));
    const items: DeliveryRecord[] = shown.flatMap(({ position }) => records.get(position) ?? []);
    const last = shown.at(-1);
    return { items, next: places.length > limit && last ? last : null };
  }

  return { list };
}

/** Yields to the event loop after some milliseconds of work. */
function pacer(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < MAX_TURN_MS) return;
    await turn();
    since = performance.now();
  };
}

function matches(row: DeliveryFacts, { status, pluginId, event, since }: WalkFilter): boolean {
  return (
    (status === undefined || status.includes(row.status)) &&
    (pluginId === undefined || row.pluginId === pluginId) &&
    (event === undefined || row.event === event) &&
    (since === undefined || row.receivedAt >= since)
  );
}

function statements(db: Database) {
  return {
    listedFrom: db.prepare<[], { position: number }>('select listed_from as position from delivery_progress'),
    firstFrom: db.prepare<[number, number], DeliveryCursor>(
      'select position, received_at as receivedAt from delivery where position >= ? and position < ? order by position limit 1',
    ),
  };
}
