import { setImmediate as turn } from 'node:timers/promises';
import type { DeliveryCursor } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { TextCandidates } from '../text-index/search.ts';
import { compareNewest, type WalkFilter } from './list-walk.ts';
import { containing, matches, type RowScan, type ScanOptions } from './row-scan.ts';
import type { DeliveryRows } from './rows.ts';

/** Number of candidates that one query compares with the search text. */
const VERIFIED_ROWS = 64;
const MAX_TURN_MS = 5;

/** Finds the newest deliveries that contain a text. Candidates come from the text index. */
export class TextSearch {
  readonly #db: Database;
  readonly #rows: DeliveryRows;
  readonly #scan: RowScan;

  constructor(db: Database, rows: DeliveryRows, scan: RowScan) {
    this.#db = db;
    this.#rows = rows;
    this.#scan = scan;
  }

  /**
   * Compares candidates with the search text, newest first. Reads an index segment only after all newer candidates were
   * compared.
   */
  async find(
    filter: WalkFilter,
    { before, search }: ScanOptions,
    candidates: TextCandidates,
    wanted: number,
  ): Promise<DeliveryCursor[]> {
    const { segments } = candidates;
    const isBehind = (place: DeliveryCursor): boolean => !before || compareNewest(before, place) < 0;
    const indexedUntil = Math.max(...segments.map(({ last }) => last));
    const closed = segments.filter(
      ({ newestAt, oldestAt }) =>
        newestAt >= (filter.since ?? 0) && (!before || oldestAt <= before.receivedAt),
    );
    let pool = (await this.#scan.unindexed(filter, indexedUntil)).filter(isBehind).sort(compareNewest);
    const found: DeliveryCursor[] = [];
    const rest = pacer();
    while (found.length < wanted) {
      const newest = closed[0]?.newestAt ?? -1;
      const chunk = pool.slice(0, VERIFIED_ROWS).filter(({ receivedAt }) => receivedAt > newest);
      if (chunk.length > 0) {
        pool = pool.slice(chunk.length);
        found.push(...(await this.#verified(filter, chunk, search)));
      } else {
        const segment = closed.shift();
        if (!segment) break;
        const opened = (await this.#db.read(() => candidates.of(segment))).filter(isBehind);
        if (opened.length > 0) pool = [...pool, ...opened].sort(compareNewest);
      }
      await rest();
    }
    return found.slice(0, wanted);
  }

  async #verified(
    filter: WalkFilter,
    places: readonly DeliveryCursor[],
    search: string | undefined,
  ): Promise<DeliveryCursor[]> {
    const positions = places.map(({ position }) => position);
    const facts = await this.#db.read(() => this.#rows.facts(filter.namespaceId, positions));
    const matching = facts.filter((row) => matches(row, filter)).sort(compareNewest);
    return this.#db.read(() => containing(this.#rows, matching, search));
  }
}

/** Returns a function that yields to the event loop after MAX_TURN_MS of work. */
function pacer(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < MAX_TURN_MS) return;
    await turn();
    since = performance.now();
  };
}
