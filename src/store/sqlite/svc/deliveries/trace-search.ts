import { setImmediate as turn } from 'node:timers/promises';
import type { DeliveryRecord } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { TextIndex } from '../text-index/text-index.ts';
import type { DeliveryRows } from './rows.ts';

/** Number of positions that one event-loop turn scans. Takes about a millisecond. */
const SCANNED_POSITIONS = 500;

type Place = { namespaceId: string; traceId: string };

/**
 * Finds the deliveries of a trace. The text index contains most of them, because an index of random ids in `svc.db`
 * would slow down each insert. The latest deliveries are scanned.
 */
export class TraceSearch {
  readonly #db: Database;
  readonly #rows: DeliveryRows;
  readonly #texts: TextIndex;
  readonly #sql: ReturnType<typeof statements>;

  constructor(db: Database, rows: DeliveryRows, texts: TextIndex) {
    this.#db = db;
    this.#rows = rows;
    this.#texts = texts;
    this.#sql = statements(db);
  }

  /** Returns the newest deliveries of the trace, without bodies. */
  async find(namespaceId: string, traceId: string, limit: number): Promise<DeliveryRecord[]> {
    const place = { namespaceId, traceId };
    const candidates = await this.#texts.search(namespaceId, place);
    const segments = candidates?.segments ?? [];
    const indexedUntil = Math.max(0, ...segments.map(({ last }) => last));
    const found = await this.#scanAfter(indexedUntil, place);
    for (const segment of segments) {
      const places = await this.#db.read(() => candidates!.of(segment));
      if (places.length === 0) continue;
      const positions = JSON.stringify(places.map(({ position }) => position));
      const rows = await this.#db.read(() => this.#sql.among.all({ ...place, positions }));
      found.push(...rows.map(({ position }) => position));
      if (found.length >= limit) break;
      await turn();
    }
    const positions = found.sort((a, b) => b - a).slice(0, limit);
    const heads = await this.#db.read(() => this.#rows.heads(positions));
    return positions.flatMap((position) => heads.get(position) ?? []);
  }

  async #scanAfter(position: number, place: Place): Promise<number[]> {
    const latest = await this.#db.read(() => this.#rows.latest());
    const found: number[] = [];
    for (let from = position; from < latest; from += SCANNED_POSITIONS) {
      const until = from + SCANNED_POSITIONS;
      const rows = await this.#db.read(() => this.#sql.between.all({ ...place, from, until }));
      found.push(...rows.map((row) => row.position));
      await turn();
    }
    return found;
  }
}

function statements(db: Database) {
  // The unary plus keeps SQLite from using the index of namespaces, which contains far more rows.
  const ofTrace = 'select position from delivery where trace_id = :traceId and +namespace_id = :namespaceId';
  return {
    among: db.prepare<[Place & { positions: string }], { position: number }>(
      `${ofTrace} and position in (select value from json_each(:positions))`,
    ),
    between: db.prepare<[Place & { from: number; until: number }], { position: number }>(
      `${ofTrace} and position > :from and position <= :until`,
    ),
  };
}
