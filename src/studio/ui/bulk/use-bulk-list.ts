import { useEffect } from 'preact/hooks';
import type { Pages } from '../../api/pages.ts';
import { rememberList } from '../neighbours.tsx';
import { type Bulk, useBulk } from './use-bulk.ts';
import { type Chosen, useChosen } from './use-chosen.ts';

interface BulkListOptions<T> {
  /** Name of the list, under which an action is stored. */
  list: string;
  filters: object;
  pages: Pages<T>;
  hrefOf: (item: T) => string;
}

/** Chosen rows and bulk actions of a list, which is loaded again after an action. Its order is remembered for `Neighbours`. */
export function useBulkList<T>({ list, filters, pages, hrefOf }: BulkListOptions<T>): {
  chosen: Chosen;
  bulk: Bulk;
} {
  const chosen = useChosen(filters);
  const bulk = useBulk({
    list,
    of: [filters, ...chosen.keys],
    onDone: () => {
      chosen.clear();
      pages.reload();
    },
  });
  useEffect(() => rememberList(pages.items.map(hrefOf)), [pages.items]);
  return { chosen, bulk };
}
