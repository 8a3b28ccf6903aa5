import { useEffect, useRef } from 'preact/hooks';
import type { Pages } from '../api/pages.ts';

interface RefreshOptions<T> {
  keyOf: (item: T) => string;
  /** Number of items of a full page. */
  pageSize: number;
  everyMs: number;
  isOn?: boolean;
}

/** Reads the first page of a list again and again, while `isOn` and the tab is visible. */
export function useRefresh<T>(pages: Pages<T>, options: RefreshOptions<T>): void {
  const { keyOf, pageSize, everyMs, isOn = true } = options;
  const latest = useRef(pages);
  latest.current = pages;
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => {
      const { error, isLoading, refresh } = latest.current;
      if (document.hidden || error || isLoading) return;
      refresh((items, page) => withFirstPage(items, page, { keyOf, pageSize }));
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, isOn]);
}

/** Replaces the beginning of a list by its first page. Without a common item, the page stands for the list. */
export function withFirstPage<T>(
  items: readonly T[],
  page: readonly T[],
  { keyOf, pageSize }: Pick<RefreshOptions<T>, 'keyOf' | 'pageSize'>,
): readonly T[] {
  const last = page.at(-1);
  if (last === undefined || page.length < pageSize) return page;
  const index = items.findIndex((item) => keyOf(item) === keyOf(last));
  return index === -1 ? page : [...page, ...items.slice(index + 1)];
}
