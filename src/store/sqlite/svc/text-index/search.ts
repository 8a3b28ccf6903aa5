import type { DeliveryCursor, DeliveryFilter } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import { compareNewest } from '../deliveries/list-walk.ts';
import { decodeDocs, factBucket, OPEN_BUCKET, trigramsOf } from './buckets.ts';

export interface SegmentRange {
  first: number;
  last: number;
  newestAt: number;
  oldestAt: number;
}

/** Number of candidates below which comparing the texts of the candidates is cheaper than reading more buckets. */
const FEW = 4;

/** Filter with a condition for which the index has buckets. */
export type IndexedFilter = DeliveryFilter & ({ search: string } | { traceId: string });

/**
 * Deliveries of a namespace that might contain a text or belong to a trace. The caller must compare the rows with the
 * filter.
 */
export class TextCandidates {
  readonly segments: readonly SegmentRange[];
  readonly #sql: ReturnType<typeof statements>;
  readonly #facts: readonly number[];
  readonly #statuses: readonly number[] | undefined;
  #buckets: number[];
  #isRanked = false;

  constructor(db: Database, namespaceId: string, filter: IndexedFilter) {
    this.#sql = statements(db);
    this.#buckets = 'traceId' in filter ? [factBucket('trace', filter.traceId)] : trigramsOf(filter.search);
    const facts = [factBucket('namespace', namespaceId)];
    if (filter.pluginId !== undefined) facts.push(factBucket('plugin', filter.pluginId));
    if (filter.event !== undefined) facts.push(factBucket('event', filter.event));
    this.#facts = facts;
    this.#statuses = filter.status?.map((status) => factBucket('status', status));
    this.segments = this.#sql.segments.all();
  }

  /**
   * Returns the candidates of a segment, newest first, or none if the segment was deleted. Must run inside `db.read`.
   */
  of({ first }: SegmentRange): DeliveryCursor[] {
    this.#sql.begin.run();
    try {
      const segment = this.#sql.segment.get(first);
      if (!segment) return [];
      const docs = this.#candidates(segment.id);
      // The large `places` column is read only if there are candidates, because most segments have no candidates.
      if (isEmpty(docs)) return [];
      const places = new Float64Array(new Uint8Array(this.#sql.places.get(segment.id)!.places).buffer);
      const count = places.length / 2;
      const found: DeliveryCursor[] = [];
      for (let doc = 0; doc < count; doc++)
        if ((docs[doc >> 3]! >> (doc & 7)) & 1)
          found.push({ position: places[doc]!, receivedAt: places[count + doc]! });
      return found.sort(compareNewest);
    } finally {
      this.#sql.end.run();
    }
  }

  #candidates(segment: number): Uint8Array {
    if (!this.#isRanked) this.#rank(segment);
    const [first, ...others] = this.#buckets;
    const found = new Uint8Array(this.#docsOf(segment, first!));
    for (const bucket of others) {
      if (hasFew(found)) break;
      and(found, this.#docsOf(segment, bucket));
    }
    if (this.#statuses) {
      const any = new Uint8Array(found.length);
      for (const bucket of this.#statuses) or(any, this.#docsOf(segment, bucket));
      and(found, any);
    }
    or(found, this.#docsOf(segment, OPEN_BUCKET));
    for (const bucket of this.#facts) if (!isEmpty(found)) and(found, this.#docsOf(segment, bucket));
    return found;
  }

  /**
   * Sorts the buckets of the text by their size in this segment, smallest first. In most segments, the smallest bucket
   * alone excludes all deliveries.
   */
  #rank(segment: number): void {
    const sizes = new Map(this.#buckets.map((bucket) => [bucket, countOf(this.#docsOf(segment, bucket))]));
    this.#buckets = this.#buckets.toSorted((a, b) => sizes.get(a)! - sizes.get(b)!);
    this.#isRanked = true;
  }

  #docsOf(segment: number, bucket: number): Uint8Array {
    return decodeDocs(this.#sql.docs.get(segment, bucket)?.docs);
  }
}

function and(target: Uint8Array, other: Uint8Array): void {
  for (let at = 0; at < target.length; at++) target[at]! &= other[at]!;
}

function or(target: Uint8Array, other: Uint8Array): void {
  for (let at = 0; at < target.length; at++) target[at]! |= other[at]!;
}

const isEmpty = (bitmap: Uint8Array): boolean => bitmap.every((byte) => byte === 0);

function hasFew(bitmap: Uint8Array): boolean {
  let count = 0;
  for (const byte of bitmap) {
    if (byte === 0) continue;
    count += countOf([byte]);
    if (count > FEW) return false;
  }
  return true;
}

function countOf(bitmap: Iterable<number>): number {
  let count = 0;
  for (let byte of bitmap) for (; byte !== 0; byte &= byte - 1) count++;
  return count;
}

function statements(db: Database) {
  return {
    begin: db.prepare('begin'),
    end: db.prepare('commit'),
    segments: db.prepare<[], SegmentRange>(
      'select first, last, newest_at as newestAt, oldest_at as oldestAt from segment order by newest_at desc',
    ),
    segment: db.prepare<[number], { id: number }>('select id from segment where first = ?'),
    places: db.prepare<[number], { places: Buffer }>('select places from segment where id = ?'),
    docs: db.prepare<[number, number], { docs: Buffer }>(
      'select docs from posting where segment = ? and bucket = ?',
    ),
  };
}
