import type { EventRecord, LogLineRecord, Numbered } from '../../ports/index.ts';
import type { Database } from '../database.ts';

/** Maximum number of events or log lines per row. The id of an event or log line is `row * 1000 + index`. */
const ITEMS_PER_ROW = 1000;

/** Queries on the events and log lines of runs. Events or log lines that are written together share a row. */
export function historyRows(db: Database) {
  const sql = statements(db);
  const packed = (put: typeof sql.addEvents) => (seq: number, items: readonly unknown[]) => {
    for (let start = 0; start < items.length; start += ITEMS_PER_ROW) {
      put.run({ seq, body: JSON.stringify(items.slice(start, start + ITEMS_PER_ROW)) });
    }
  };
  const unpacked =
    <Item>(get: typeof sql.events) =>
    (seq: number, after: number, limit: number, matches: (item: Item) => boolean): Array<Numbered<Item>> => {
      const found: Array<Numbered<Item>> = [];
      for (const { n, body } of get.iterate({ seq, n: Math.floor(after / ITEMS_PER_ROW) })) {
        for (const [place, item] of (JSON.parse(body) as Item[]).entries()) {
          const id = n * ITEMS_PER_ROW + place;
          if (id > after && matches(item)) found.push({ id, item });
        }
        if (found.length >= limit) break;
      }
      return found.slice(0, limit);
    };
  const latestLogs = (seq: number, before: number, limit: number): Array<Numbered<LogLineRecord>> => {
    const found: Array<Numbered<LogLineRecord>> = [];
    for (const { n, body } of sql.latestLogs.iterate({ seq, n: Math.floor(before / ITEMS_PER_ROW) })) {
      const items = JSON.parse(body) as LogLineRecord[];
      for (let place = items.length - 1; place >= 0; place--) {
        const id = n * ITEMS_PER_ROW + place;
        if (id < before) found.push({ id, item: items[place]! });
      }
      if (found.length >= limit) break;
    }
    return found.slice(0, limit);
  };

  return {
    latestLogs,
    addEvents: packed(sql.addEvents) as (seq: number, events: readonly EventRecord[]) => void,
    addLogs: packed(sql.addLogs) as (seq: number, lines: readonly LogLineRecord[]) => void,
    events: unpacked<EventRecord>(sql.events),
    logs: unpacked<LogLineRecord>(sql.logs),
  };
}

function statements(db: Database) {
  return {
    addEvents: db.prepare<[{ seq: number; body: string }]>(
      'insert into run_event (run_seq, body) values (:seq, :body)',
    ),
    addLogs: db.prepare<[{ seq: number; body: string }]>(
      'insert into run_log (run_seq, body) values (:seq, :body)',
    ),
    events: db.prepare<[{ seq: number; n: number }], { n: number; body: string }>(
      'select id as n, body from run_event where run_seq = :seq and id >= :n order by id',
    ),
    logs: db.prepare<[{ seq: number; n: number }], { n: number; body: string }>(
      'select id as n, body from run_log where run_seq = :seq and id >= :n order by id',
    ),
    latestLogs: db.prepare<[{ seq: number; n: number }], { n: number; body: string }>(
      'select id as n, body from run_log where run_seq = :seq and id <= :n order by id desc',
    ),
  };
}
