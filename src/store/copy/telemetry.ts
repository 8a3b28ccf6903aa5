import type pg from 'pg';
import { days } from '../../kit/time/duration.ts';
import { DAY_MS, DAYS_AHEAD, DAYS_BEHIND } from '../postgres/telemetry/schema.ts';
import { indexedText, searchVector } from '../postgres/telemetry/texts.ts';
import { actorKey } from '../telemetry/event-rows.ts';
import type { CopySource } from './source.ts';
import { columnsOf, insertRows } from './table-writer.ts';
import { RECORD_TABLES } from './tables.ts';

type RecordTable = (typeof RECORD_TABLES)[number];
type Row = Record<string, unknown>;
type CopyOptions = { source: CopySource; now: number };

/** Maximum age of a record, so that a wrong clock creates no partitions. */
const MAX_AGE_MS = days(500);
/** Number of records that arrived first, which are not exactly in the order of their times. */
const FIRST_ARRIVALS = 1000;
const TIMES = { log: 'time', event: 'ts' } as const;
/** Columns with a limited length, because indexes contain them. */
const INDEXED = ['tenant_id', 'request_id', 'trace_id', 'plugin_id', 'run_id', 'type', 'product'];

/**
 * Creates the partitions for all records of the source. Uses several transactions, because one transaction for all
 * partitions would need too many locks.
 */
export async function createDays(client: pg.Client, options: CopyOptions): Promise<void> {
  const { now } = options;
  for (const table of RECORD_TABLES) {
    const first = firstTime(options, table);
    const create = (at: number) =>
      client.query('select svc.create_telemetry_days($1, $2, $3)', [at, [table], first]);
    for (let at = first; at < now; at += days(DAYS_BEHIND + DAYS_AHEAD)) await create(at);
    await create(now);
  }
}

/** Copies all log records or events with their ids, and returns their number. */
export async function copyRecords(
  client: pg.Client,
  { source, now }: CopyOptions,
  table: RecordTable,
): Promise<number> {
  if (!source.has('telemetry.db')) return 0;
  const time = TIMES[table];
  const first = firstTime({ source, now }, table);
  const last = now - (now % DAY_MS) + days(DAYS_AHEAD);
  function* rows(): Generator<Row> {
    for (const row of source.rows('telemetry.db', `select * from ${table} order by id`)) {
      const copied: Row = { ...row, [time]: Math.min(Math.max(row[time] as number, first), last) };
      for (const name of INDEXED) if (typeof row[name] === 'string') copied[name] = indexedText(row[name]);
      if (table === 'log') copied.words = searchVector(row.message as string);
      else copied.actor_key = indexedText(keyOf(row.actor as string | null));
      yield copied;
    }
  }
  const count = await insertRows(client, table, await columnsOf(client, table), rows());
  await client.query(
    `update svc.telemetry_day d set rows = n.rows, last_id = n.last_id
     from (select ${time} - ${time} % ${DAY_MS} as day, count(*) as rows, max(id) as last_id from svc.${table} group by 1) n
     where d.kind = $1 and d.day = n.day`,
    [table],
  );
  await client.query('update svc.telemetry_position set last_id = greatest(last_id, $1)', [
    source.highest('telemetry.db', table, 'id'),
  ]);
  return count;
}

/**
 * Returns the earliest time among the records that arrived first, but at most `MAX_AGE_MS` before now. Records with an
 * earlier time get the returned time in the copy.
 */
function firstTime({ source, now }: CopyOptions, table: RecordTable): number {
  const time = TIMES[table];
  const first = source.number(
    'telemetry.db',
    `select coalesce(min(${time}), ${now}) from (select ${time} from ${table} order by id limit ${FIRST_ARRIVALS})`,
  );
  return source.has('telemetry.db') ? Math.max(now - MAX_AGE_MS, Math.min(now, first)) : now;
}

function keyOf(actor: string | null): string {
  return actorKey(actor === null ? undefined : JSON.parse(actor));
}
