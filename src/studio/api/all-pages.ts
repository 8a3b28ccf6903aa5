import { call, type Input } from './call.ts';
import type { ItemOf, ListName } from './pages.ts';
import { type QueryOptions, type QueryState, useResult } from './query.ts';

/** Largest page of a list. */
const PAGE = 1000;

interface AllItems<T> {
  items: readonly T[];
  /** Whether the end of the list was reached. */
  isComplete: boolean;
}

/** Reads a list to its end, or to the end of page `maxPages`. */
export function useAllPages<Name extends ListName>(
  name: Name,
  query: NonNullable<Input<Name>['query']>,
  maxPages: number,
  options?: QueryOptions,
): QueryState<AllItems<ItemOf<Name>>> {
  const read = async (signal: AbortSignal): Promise<AllItems<ItemOf<Name>>> => {
    const items: Array<ItemOf<Name>> = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < maxPages; pages++) {
      const input = { query: { ...query, limit: PAGE, cursor } } as unknown as Input<Name>;
      const page = await call(name, input, { signal });
      items.push(...page.items);
      if (page.nextCursor === null) return { items, isComplete: true };
      cursor = page.nextCursor;
    }
    return { items, isComplete: false };
  };
  return useResult(name, JSON.stringify(['all', query, maxPages]), read, options);
}
