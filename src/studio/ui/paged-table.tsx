import type { ComponentChildren } from 'preact';
import type { Pages } from '../api/pages.ts';
import { type Column, DataTable } from './data-table.tsx';
import { MoreButton } from './more-button.tsx';
import { Failure, Loading } from './states.tsx';

interface PagedTableProps<T> {
  label: string;
  pages: Pages<T>;
  columns: ReadonlyArray<Column<T>>;
  keyOf: (item: T) => string;
  /** Shown for a list without items. */
  empty: ComponentChildren;
}

/** Table of a list that is loaded page by page, or why there is none. */
export function PagedTable<T>({ label, pages, columns, keyOf, empty }: PagedTableProps<T>) {
  const { items, error, isLoading, reload } = pages;
  if (error && items.length === 0) return <Failure error={error} onRetry={reload} />;
  if (items.length === 0) return isLoading ? <Loading what={label.toLowerCase()} /> : empty;
  return (
    <>
      {error && <Failure error={error} onRetry={reload} />}
      <DataTable label={label} columns={columns} items={items} keyOf={keyOf} />
      <MoreButton pages={pages} />
    </>
  );
}
