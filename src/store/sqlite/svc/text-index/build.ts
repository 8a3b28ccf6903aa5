import type Sqlite from 'better-sqlite3';
import { searchedHeaders } from '../../../../kit/data/recorded-headers.ts';
import { IS_OPEN } from '../deliveries/statements.ts';
import { BUCKETS, eachTrigram, encodeDocs, factBucket, OPEN_BUCKET, SEGMENT_DOCS } from './buckets.ts';

export interface BuiltSegment {
  first: number;
  last: number;
  newestAt: number;
  oldestAt: number;
  places: Buffer;
  hasOpen: 0 | 1;
  hasBodies: 0 | 1;
  /** Yields the encoded deliveries of each bucket, in order of buckets. */
  postings(): Generator<readonly [bucket: number, docs: Buffer]>;
}

interface Row {
  position: number;
  receivedAt: number;
  namespaceId: string;
  pluginId: string;
  event: string;
  status: string;
  traceId: string;
  isOpen: 0 | 1;
  texts: string;
  headers: string | null;
  body: Buffer | null;
}

/** Maximum number of postings per segment. These postings take 16 MB of memory. */
const MAX_POSTINGS = 4 * 1024 * 1024;
const DOC_BITS = Math.log2(SEGMENT_DOCS);

/**
 * Builds segments from an open `svc.db`. The builder allocates its working memory once and uses it for all segments.
 */
export function segmentBuilder(inbox: Sqlite.Database, isStopped: () => boolean) {
  const rows = inbox.prepare<[number, number, number], Row>(`
    select d.position, received_at as receivedAt, namespace_id as namespaceId, plugin_id as pluginId, event, status, trace_id as traceId,
      ${IS_OPEN} as isOpen, coalesce(outcome, '') || char(1) || source || char(1) || request_id || char(1) || instance_id as texts, headers,
      coalesce(d.body, b.body) as body
    from delivery d left join delivery_body b using (position)
    where d.position > ? and d.position <= ? order by d.position limit ?`);
  const pairs = new Uint32Array(MAX_POSTINGS + BUCKETS);
  /** Number of the last delivery in each bucket, which prevents duplicate postings. */
  const lastDoc = new Int32Array(BUCKETS);

  return {
    /**
     * Builds a segment from the deliveries after `after`, up to `until`. Returns undefined if no deliveries were found
     * or the worker was stopped.
     */
    build(after: number, until: number): BuiltSegment | undefined {
      let count = 0;
      const found: Row[] = [];
      let hasBodies: 0 | 1 = 0;
      lastDoc.fill(-1);
      for (const row of rows.iterate(after, until, SEGMENT_DOCS)) {
        if (isStopped()) return undefined;
        const doc = found.length;
        const take = (bucket: number): void => {
          if (lastDoc[bucket] === doc) return;
          lastDoc[bucket] = doc;
          pairs[count++] = bucket * SEGMENT_DOCS + doc;
        };
        if (row.body) eachTrigram(row.body, take);
        eachTrigram(Buffer.from([row.texts, ...searchedHeaders(row.headers)].join('\u0001')), take);
        take(factBucket('namespace', row.namespaceId));
        take(factBucket('plugin', row.pluginId));
        take(factBucket('event', row.event));
        take(factBucket('status', row.status));
        take(factBucket('trace', row.traceId));
        if (row.isOpen) take(OPEN_BUCKET);
        if (row.body) hasBodies = 1;
        found.push({ ...row, body: null, texts: '', headers: null });
        if (count > MAX_POSTINGS) break;
      }
      if (found.length === 0) return undefined;
      const times = found.map(({ receivedAt }) => receivedAt);
      const places = new Float64Array([...found.map(({ position }) => position), ...times]);
      return {
        first: found[0]!.position,
        last: found.at(-1)!.position,
        newestAt: Math.max(...times),
        oldestAt: Math.min(...times),
        places: Buffer.from(places.buffer),
        hasOpen: found.some(({ isOpen }) => isOpen) ? 1 : 0,
        hasBodies,
        postings: () => postingsOf(pairs.subarray(0, count)),
      };
    },
  };
}

/** Groups postings by bucket with a counting sort. The deliveries of a bucket are already in ascending order. */
function* postingsOf(pairs: Uint32Array): Generator<readonly [number, Buffer]> {
  const ends = new Uint32Array(BUCKETS + 1);
  for (const pair of pairs) ends[(pair >>> DOC_BITS) + 1]!++;
  for (let bucket = 0; bucket < BUCKETS; bucket++) ends[bucket + 1]! += ends[bucket]!;
  const docs = new Uint32Array(pairs.length);
  for (const pair of pairs) docs[ends[pair >>> DOC_BITS]!++] = pair & (SEGMENT_DOCS - 1);
  // After the sort, `ends[bucket]` is the end of the bucket and the start of the next bucket.
  for (let bucket = 0, start = 0; bucket < BUCKETS; bucket++) {
    const end = ends[bucket]!;
    if (end > start) yield [bucket, encodeDocs(docs.subarray(start, end))];
    start = end;
  }
}
