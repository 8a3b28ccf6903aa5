import type { Pages } from '../api/pages.ts';

/** Loads the next page of a list. */
export function MoreButton({ pages }: { pages: Pages<unknown> }) {
  if (pages.isComplete || pages.items.length === 0) return null;
  return (
    <button type="button" disabled={pages.isLoading} onClick={pages.loadMore}>
      {pages.isLoading ? 'Loading…' : 'Show more'}
    </button>
  );
}
