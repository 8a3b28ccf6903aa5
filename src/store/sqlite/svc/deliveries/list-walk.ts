import { DeliveryStatus } from '../../../../contracts/index.ts';
import type { DeliveryCursor, DeliveryFilter } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';

export type WalkOrder = 'newest' | 'oldest';

/** Reads the positions of deliveries in time order. Must be used inside `db.read`. */
export interface DeliveryWalk {
  /** Returns the next `count` positions, or fewer at the end of the list. */
  next(count: number): DeliveryCursor[];
}

export interface WalkFilter extends Pick<DeliveryFilter, 'status' | 'pluginId' | 'event' | 'since'> {
  namespaceId: string;
}

/** Stream of deliveries in time order. The stream covers one status of one endpoint, or a whole namespace. */
interface Stream {
  fetch(after: DeliveryCursor, limit: number): DeliveryCursor[];
  buffer: DeliveryCursor[];
  isDone: boolean;
}

const CHUNK = 64;

/** Compares deliveries so that the newest comes first, by receive time and then by write order. */
export function compareNewest(a: DeliveryCursor, b: DeliveryCursor): number {
  return b.receivedAt - a.receivedAt || b.position - a.position;
}

/**
 * Returns functions that read deliveries in time order. Primary key ranges are merged, so the cost of a page does not
 * depend on the number of rows.
 */
export function deliveryWalks(db: Database) {
  const sql = statements(db);

  function endpoints({ namespaceId, pluginId, event }: WalkFilter): Array<{ plugin: string; event: string }> {
    if (pluginId !== undefined && event !== undefined) return [{ plugin: pluginId, event }];
    const found: Array<{ plugin: string; event: string }> = [];
    let last = { plugin: pluginId ?? '', event: '' };
    for (;;) {
      const next = sql.endpoint.get(namespaceId, last.plugin, last.event);
      if (!next || (pluginId !== undefined && next.plugin !== pluginId)) return found;
      if (event === undefined || next.event === event) found.push(next);
      last = next;
    }
  }

  function streams(filter: WalkFilter, order: WalkOrder): Stream[] {
    const { namespaceId, status, since = 0 } = filter;
    const stream = (fetch: Stream['fetch']): Stream => ({ fetch, buffer: [], isDone: false });
    if (status === undefined && filter.pluginId === undefined && filter.event === undefined) {
      return [
        stream(({ receivedAt, position }, limit) =>
          sql.byTime[order].all(namespaceId, receivedAt, position, since, limit),
        ),
      ];
    }
    const statuses = status ?? DeliveryStatus.options;
    return endpoints(filter).flatMap(({ plugin, event }) =>
      statuses.map((each) =>
        stream(({ receivedAt, position }, limit) =>
          sql.byStatus[order].all(namespaceId, plugin, event, each, receivedAt, position, since, limit),
        ),
      ),
    );
  }

  return {
    /** Starts reading after the position `from`. The result does not include `from`. */
    open(filter: WalkFilter, from: DeliveryCursor | undefined, order: WalkOrder): DeliveryWalk {
      const compare =
        order === 'newest' ? compareNewest : (a: DeliveryCursor, b: DeliveryCursor) => compareNewest(b, a);
      let last = from ?? startOf(order);
      let open = streams(filter, order);

      function fill(stream: Stream, limit: number): void {
        stream.buffer = stream.fetch(last, limit);
        stream.isDone = stream.buffer.length < limit;
      }
      return {
        next(count) {
          const found: DeliveryCursor[] = [];
          const first = Math.min(count, Math.max(4, Math.ceil((2 * count) / open.length)));
          while (found.length < count) {
            for (const stream of open)
              if (stream.buffer.length === 0 && !stream.isDone)
                fill(stream, found.length === 0 ? first : CHUNK);
            open = open.filter(({ buffer }) => buffer.length > 0);
            let next: Stream | undefined;
            for (const stream of open)
              if (!next || compare(stream.buffer[0]!, next.buffer[0]!) < 0) next = stream;
            if (!next) break;
            last = next.buffer.shift()!;
            found.push(last);
          }
          return found;
        },
      };
    },
  };
}

export type DeliveryWalks = ReturnType<typeof deliveryWalks>;

function startOf(order: WalkOrder): DeliveryCursor {
  return order === 'newest'
    ? { receivedAt: Number.MAX_SAFE_INTEGER, position: Number.MAX_SAFE_INTEGER }
    : { receivedAt: 0, position: 0 };
}

function statements(db: Database) {
  const places = 'select received_at as receivedAt, position from';
  const ordered = (order: WalkOrder): string =>
    order === 'newest'
      ? '(received_at, position) < (?, ?) and received_at >= ? order by received_at desc, position desc limit ?'
      : '(received_at, position) > (?, ?) and received_at >= ? order by received_at, position limit ?';
  const byTime = (order: WalkOrder) =>
    db.prepare<[string, number, number, number, number], DeliveryCursor>(
      `${places} delivery_by_time where namespace_id = ? and ${ordered(order)}`,
    );
  const byStatus = (order: WalkOrder) =>
    db.prepare<[string, string, string, string, number, number, number, number], DeliveryCursor>(
      `${places} delivery_by_status where namespace_id = ? and plugin_id = ? and event = ? and status = ? and ${ordered(order)}`,
    );
  return {
    byTime: { newest: byTime('newest'), oldest: byTime('oldest') },
    byStatus: { newest: byStatus('newest'), oldest: byStatus('oldest') },
    // `x''` is an empty blob, which SQLite sorts after all texts. The comparison therefore skips the remaining statuses
    // of the previous endpoint.
    endpoint: db.prepare<[string, string, string], { plugin: string; event: string }>(
      `select plugin_id as plugin, event from delivery_by_status where namespace_id = ? and (plugin_id, event, status) > (?, ?, x'')
       order by plugin_id, event limit 1`,
    ),
  };
}
