import type { ResealedRow, SealedColumns, SealedKey, SealedRow, SealedValues } from './ports/index.ts';

/** The statements for one table. They have the same text on both databases, except for the schema of the table. */
export function sealedStatements({ table, key, columns, counted }: SealedColumns, schema: '' | 'svc.') {
  const keys = key.join(', ');
  const select = `select ${keys}, ${columns.join(', ')} from ${schema}${table}`;
  const order = `order by ${keys} limit :limit`;
  const params = key.map((column) => `:${column}`).join(', ');
  const equals = (columnsOf: readonly string[], operator: string, prefix: string): string[] =>
    columnsOf.map((column) => `${column} ${operator} :${prefix}${column}`);
  return {
    first: `${select} ${order}`,
    after: `${select} where (${keys}) > (${params}) ${order}`,
    replace: `update ${schema}${table} set ${equals(columns, '=', '').join(', ')}
      where ${[...equals(key, '=', ''), ...equals(columns, 'is not distinct from', 'was_')].join(' and ')}
      returning 1 as replaced`,
    /** One query per column, each of which returns the sealed values that are counted. */
    counted: columns.map(
      (column) =>
        `select ${column} as sealed from ${schema}${table}
         where ${column} is not null${counted === undefined ? '' : ` and ${counted}`}`,
    ),
  };
}

/** Splits a stored row into its key and its sealed values. */
export function sealedRow(
  { key, columns }: SealedColumns,
  row: Readonly<Record<string, string | number | null>>,
): SealedRow {
  const pick = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, row[name]]));
  return { key: pick(key) as SealedKey, values: pick(columns) as SealedValues };
}

/** Returns the parameters of the statement `replace`. */
export function replaceParameters({
  key,
  values,
  from,
}: ResealedRow): Record<string, string | number | null> {
  const was = Object.entries(from).map(([column, value]) => [`was_${column}`, value]);
  return { ...key, ...values, ...Object.fromEntries(was) };
}
