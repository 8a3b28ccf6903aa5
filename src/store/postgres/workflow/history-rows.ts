import type { EventRecord, LogLineRecord, Numbered } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';

/** Maximum number of events or log lines per row. The id of an event or log line is `row * 1000 + index`. */
const ITEMS_PER_ROW = 1000;
/** Number of rows that one query reads. */
const ROWS = 200;
/** Number of rows that one query of the latest lines reads, which usually fill a page. */
const LATEST_ROWS = 20;

const ADD = {
  run_event: 'insert into svc.run_event (run_seq, body) values (:seq, :body)',
  run_log: 'insert into svc.run_log (run_seq, body) values (:seq, :body)',
};
const READ = {
  run_event:
    'select id, body from svc.run_event where run_seq = :seq and id >= :from order by id limit :rows',
  run_log: 'select id, body from svc.run_log where run_seq = :seq and id >= :from order by id limit :rows',
};

/**
 * Appends events or log lines. The caller must hold the lock of the run. Without the lock, a reader could miss a row
 * that is committed late.
 */
async function add(sql: Sql, table: keyof typeof ADD, seq: number, items: readonly object[]): Promise<void> {
  for (const body of historyBodies(items)) await sql(ADD[table], { seq, body });
}

/** Returns the rows of new events or log lines as JSON. */
export function historyBodies(items: readonly object[]): string[] {
  const bodies: string[] = [];
  for (let start = 0; start < items.length; start += ITEMS_PER_ROW)
    bodies.push(JSON.stringify(items.slice(start, start + ITEMS_PER_ROW)));
  return bodies;
}

export const addEvents = (sql: Sql, seq: number, events: readonly EventRecord[]) =>
  add(sql, 'run_event', seq, events);
export const addLogs = (sql: Sql, seq: number, lines: readonly LogLineRecord[]) =>
  add(sql, 'run_log', seq, lines);

async function read<Item>(
  sql: Sql,
  table: keyof typeof READ,
  { seq, after, limit }: { seq: number; after: number; limit: number },
  matches: (item: Item) => boolean,
): Promise<Array<Numbered<Item>>> {
  const found: Array<Numbered<Item>> = [];
  for (let from = Math.floor(after / ITEMS_PER_ROW); ; ) {
    const rows = await sql<{ id: number; body: string }>(READ[table], { seq, from, rows: ROWS });
    for (const { id: row, body } of rows) {
      for (const [index, item] of (JSON.parse(body) as Item[]).entries()) {
        const id = row * ITEMS_PER_ROW + index;
        if (id > after && matches(item)) found.push({ id, item });
      }
      if (found.length >= limit) return found.slice(0, limit);
    }
    const last = rows.at(-1);
    if (!last || rows.length < ROWS) return found;
    from = last.id + 1;
  }
}

export const readEvents = (sql: Sql, seq: number, after: number, limit: number) =>
  read<EventRecord>(sql, 'run_event', { seq, after, limit }, () => true);

export const readLogs = (sql: Sql, seq: number, after: number, limit: number, step?: string) =>
  read<LogLineRecord>(
    sql,
    'run_log',
    { seq, after, limit },
    (line) => step === undefined || line.step === step,
  );

/** Returns the log lines before the id `before`, newest first. */
export async function readLatestLogs(
  sql: Sql,
  seq: number,
  before: number,
  limit: number,
): Promise<Array<Numbered<LogLineRecord>>> {
  const found: Array<Numbered<LogLineRecord>> = [];
  for (let to = Math.floor(before / ITEMS_PER_ROW); ; ) {
    const rows = await sql<{ id: number; body: string }>(
      'select id, body from svc.run_log where run_seq = :seq and id <= :to order by id desc limit :rows',
      { seq, to, rows: LATEST_ROWS },
    );
    for (const { id: row, body } of rows) {
      const items = JSON.parse(body) as LogLineRecord[];
      for (let index = items.length - 1; index >= 0; index--) {
        const id = row * ITEMS_PER_ROW + index;
        if (id < before) found.push({ id, item: items[index]! });
      }
      if (found.length >= limit) return found.slice(0, limit);
    }
    const last = rows.at(-1);
    if (!last || rows.length < LATEST_ROWS) return found;
    to = last.id - 1;
  }
}
