import type pg from 'pg';

export interface Column {
  name: string;
  /** Name of the column's type, such as `bigint`. */
  type: string;
}

const MAX_ROWS = 1000;
/** Limit of a statement's JSON, in characters. A single row can exceed the limit. */
const MAX_CHARS = 4 * 1024 * 1024;

export async function columnsOf(client: pg.Client, table: string): Promise<Column[]> {
  const { rows } = await client.query<Column>(
    `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
    [`svc.${table}`],
  );
  return rows;
}

/** Inserts rows in batches. PostgreSQL converts the text values to the types of the columns. */
export async function insertRows(
  client: pg.Client,
  table: string,
  columns: readonly Column[],
  rows: Iterable<Record<string, unknown>>,
): Promise<number> {
  const names = columns.map(({ name }) => `"${name}"`).join(', ');
  const types = columns.map(({ name, type }) => `"${name}" ${type}`).join(', ');
  const statement = `insert into svc.${table} (${names}) overriding system value
    select ${names} from json_to_recordset($1::json) as row (${types})`;
  let batch: string[] = [];
  let chars = 0;
  let count = 0;
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    count += (await client.query(statement, [`[${batch.join(',')}]`])).rowCount ?? 0;
    batch = [];
    chars = 0;
  };
  for (const row of rows) {
    const json = rowText(row, columns);
    if (chars + json.length > MAX_CHARS) await flush();
    batch.push(json);
    chars += json.length;
    if (batch.length === MAX_ROWS) await flush();
  }
  await flush();
  return count;
}

function rowText(row: Record<string, unknown>, columns: readonly Column[]): string {
  return JSON.stringify(
    Object.fromEntries(columns.map(({ name, type }) => [name, inputOf(row[name], type)])),
  );
}

function inputOf(value: unknown, type: string): unknown {
  if (Buffer.isBuffer(value)) return (type === 'bytea' ? '\\x' : '') + value.toString('hex');
  // PostgreSQL cannot store U+0000.
  return typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value;
}
