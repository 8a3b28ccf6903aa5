import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { createEventStreams, type Http, type StreamCall } from '../../../http/index.ts';
import type { Numbered } from '../../../store/ports/telemetry.ts';

const POLL_MS = 300;
const PAGE = 500;
/** Maximum number of concurrent streams. Each stream polls the store three times a second. */
const MAX_STREAMS = 32;

/** Stored records in arrival order. */
export interface RecordSource {
  latest(limit: number): Promise<{ items: Array<Numbered<unknown>>; after: number }>;
  after(id: number, limit: number): Promise<Array<Numbered<unknown>>>;
}

/**
 * Query parameters of a list that can be followed. `follow` requests a stream. `after` is the record id to resume from.
 */
export interface FollowQuery {
  follow?: '0' | '1' | 'true' | 'false' | undefined;
  after?: number | undefined;
  limit: number;
}

export const follows = ({ follow }: FollowQuery): boolean => follow === '1' || follow === 'true';

/**
 * Creates a function that streams records with their ids as cursors. The function throws the errors of
 * `EventStreams.send`.
 */
export function createRecordStreams(http: Http, what: string) {
  const streams = createEventStreams(http, { what, count: MAX_STREAMS });
  return (source: RecordSource, query: FollowQuery, call: StreamCall): Promise<void> =>
    streams.send(call, async function* (signal) {
      const cursor = resumeAfter(call.request, query);
      let { items, after } =
        cursor === undefined
          ? await source.latest(query.limit)
          : { items: await source.after(cursor, PAGE), after: cursor };
      // The cursor is sent first. The client can then resume even if the connection is lost before the first record.
      yield [
        { comment: 'continue after an event with its id as Last-Event-ID or after=', id: String(after) },
      ];
      for (;;) {
        if (items.length > 0) {
          after = Math.max(after, items.at(-1)!.id);
          yield items.map(({ id, record }) => ({ id: String(id), data: JSON.stringify(record) }));
        }
        // Polls in real time, even in tests with a fake clock, because other processes and nodes write the records. A
        // notification by PostgreSQL would need a connection per process, and the records would still be queried.
        if (items.length < PAGE) await sleep(POLL_MS, undefined, { signal });
        items = await source.after(after, PAGE);
      }
    });
}

function resumeAfter(request: FastifyRequest, query: FollowQuery): number | undefined {
  const header = request.headers['last-event-id'];
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : query.after;
}
