import { setImmediate as turn } from 'node:timers/promises';
import type { DeliveryCursor } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import { compareNewest, type WalkFilter } from './list-walk.ts';
import type { DeliveryFacts, DeliveryRows } from './rows.ts';

/**
 * Number of rows that one event-loop turn scans when bodies are read. Without bodies, a turn scans SCANNED_ROWS. A turn
 * takes a few milliseconds.
 */
export const SEARCHED_ROWS = 250;
const SCANNED_ROWS = 1000;
/** Maximum time between the receipt of a delivery and its insertion. The value follows from the request timeouts. */
const MAX_WRITE_DELAY_MS = 10 * 60_000;

export interface ScanOptions {
  before?: DeliveryCursor | undefined;
  search?: string | undefined;
}

/** Scans rows that are not in an index yet. Each event-loop turn scans a limited number of rows. */
export class RowScan {
  readonly #db: Database;
  readonly #rows: DeliveryRows;
  readonly #firstFrom: (from: number, end: number) => DeliveryCursor | undefined;

  constructor(db: Database, rows: DeliveryRows) {
    this.#db = db;
    this.#rows = rows;
    const firstFrom = db.prepare<[number, number], DeliveryCursor>(
      'select position, received_at as receivedAt from delivery where position >= ? and position < ? order by position limit 1',
    );
    this.#firstFrom = (from, end) => firstFrom.get(from, end);
  }

  /** Returns the newest matching rows before the position `end`. These rows are not in the list tables yet. */
  async unlisted(
    filter: WalkFilter,
    { before, search }: ScanOptions,
    end: number,
    wanted: number,
  ): Promise<DeliveryCursor[]> {
    const scan = search === undefined ? SCANNED_ROWS : SEARCHED_ROWS;
    let found: DeliveryCursor[] = [];
    let position = before ? await this.#db.read(() => this.#firstWrittenAfter(before.receivedAt, end)) : end;
    for (;;) {
      const batch = await this.#db.read(() => this.#rows.rowsBefore(filter.namespaceId, position, scan));
      const last = batch.at(-1);
      if (!last) return found;
      const matching = batch.filter(
        (row) => matches(row, filter) && (!before || compareNewest(before, row) < 0),
      );
      found.push(...(await this.#db.read(() => containing(this.#rows, matching, search))));
      found = found.sort(compareNewest).slice(0, wanted);
      if (found.length === wanted && found.at(-1)!.receivedAt > last.receivedAt + MAX_WRITE_DELAY_MS)
        return found;
      position = last.position;
      await turn();
    }
  }

  /** Returns matching rows after the position `indexedUntil`. The text index does not contain these rows yet. */
  async unindexed(filter: WalkFilter, indexedUntil: number): Promise<DeliveryCursor[]> {
    const found: DeliveryCursor[] = [];
    for (let position = Number.MAX_SAFE_INTEGER; ; ) {
      const batch = await this.#db.read(() =>
        this.#rows.rowsBefore(filter.namespaceId, position, SCANNED_ROWS),
      );
      found.push(...batch.filter((row) => row.position > indexedUntil && matches(row, filter)));
      position = batch.at(-1)?.position ?? 0;
      if (batch.length < SCANNED_ROWS || position <= indexedUntil) return found;
      await turn();
    }
  }

  /**
   * Returns the first position that was inserted after all deliveries received until `time`. Uses binary search,
   * because positions follow the order of insertion.
   */
  #firstWrittenAfter(time: number, end: number): number {
    let [low, high] = [0, end];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const row = this.#firstFrom(middle, end);
      if (!row || row.receivedAt > time + MAX_WRITE_DELAY_MS) high = middle;
      else low = row.position + 1;
    }
    return low;
  }
}

export function matches(row: DeliveryFacts, { status, pluginId, event, since }: WalkFilter): boolean {
  return (
    (status === undefined || status.includes(row.status)) &&
    (pluginId === undefined || row.pluginId === pluginId) &&
    (event === undefined || row.event === event) &&
    (since === undefined || row.receivedAt >= since)
  );
}

/** Returns the rows that contain the search text, or all rows if `search` is undefined. Must run inside `db.read`. */
export function containing(
  rows: DeliveryRows,
  places: readonly DeliveryCursor[],
  search: string | undefined,
): DeliveryCursor[] {
  if (search === undefined || places.length === 0) return [...places];
  const positions = places.map(({ position }) => position);
  const found = new Set(rows.holding(positions, search));
  return places.filter(({ position }) => found.has(position));
}
