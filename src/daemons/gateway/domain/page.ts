/** Builds a page from rows that were read with `limit + 1`. An extra row means that there is a next page. */
export function pageOf<Row, Item>(
  rows: readonly Row[],
  limit: number,
  idOf: (row: Row) => string,
  itemOf: (row: Row) => Item,
): { items: Item[]; nextCursor: string | null } {
  const shown = rows.slice(0, limit);
  return { items: shown.map(itemOf), nextCursor: rows.length > limit ? idOf(shown.at(-1)!) : null };
}
