import { useEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, call, type EndpointName, type Input, type Reply } from './call.ts';

/** Endpoints whose answer is a page of items with a cursor. */
export type ListName = {
  [Name in EndpointName]: Reply<Name> extends { items: unknown[]; nextCursor: string | null } ? Name : never;
}[EndpointName];
export type ItemOf<Name extends ListName> = Reply<Name>['items'][number];

export interface Pages<T> {
  items: readonly T[];
  error: ApiError | undefined;
  isLoading: boolean;
  /** Whether the last page is loaded. */
  isComplete: boolean;
  loadMore(): void;
  reload(): void;
  /** Loads the first page again and combines it with the items. */
  refresh(combine: (items: readonly T[], page: readonly T[]) => readonly T[]): void;
  /** Replaces the items, for example by those of a live stream. */
  update(change: Change<T>): void;
}

type Change<T> = (items: readonly T[]) => readonly T[];

interface State<T> {
  items: readonly T[];
  cursor: string | null | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
}

const FIRST = { items: [], cursor: undefined, error: undefined, isLoading: true };

/** Loads a list page after page. A change of the query starts it again. */
export function usePages<Name extends ListName>(
  name: Name,
  query: NonNullable<Input<Name>['query']>,
  params?: Record<string, string>,
): Pages<ItemOf<Name>> {
  type Item = ItemOf<Name>;
  const key = JSON.stringify([query, params]);
  const [state, setState] = useState<State<Item>>(FIRST);
  const [round, setRound] = useState(0);
  const loading = useRef<AbortController | null>(null);
  const refreshing = useRef<AbortController | null>(null);
  // A page can be older than changes that arrive while it loads. These are repeated on the page.
  const pending = useRef(new Set<Array<Change<Item>>>());

  const fetchPage = async (cursor: string | undefined, signal: AbortSignal) => {
    const changes: Array<Change<Item>> = [];
    pending.current.add(changes);
    try {
      const page = await call(name, { params, query: { ...query, cursor } } as unknown as Input<Name>, {
        signal,
      });
      const repeat: Change<Item> = (items) => changes.reduce((all, change) => change(all), items);
      return { ...page, repeat };
    } finally {
      pending.current.delete(changes);
    }
  };

  const load = (from: string | undefined): void => {
    loading.current?.abort();
    const controller = new AbortController();
    loading.current = controller;
    setState((before) => ({ ...before, isLoading: true, error: undefined }));
    const next = async (cursor: string | undefined): Promise<void> => {
      const { items, nextCursor, repeat } = await fetchPage(cursor, controller.signal);
      const isGap = items.length === 0 && nextCursor !== null;
      setState((before) => ({
        items: cursor === undefined ? repeat(items) : [...before.items, ...items],
        cursor: nextCursor,
        error: undefined,
        isLoading: isGap,
      }));
      // The service bounds how much a call reads, so a page can be empty before the end of the list.
      if (isGap) await next(nextCursor);
    };
    next(from).catch((error: ApiError) => {
      if (!controller.signal.aborted) setState((before) => ({ ...before, error, isLoading: false }));
    });
  };

  useEffect(() => {
    setState(FIRST);
    load(undefined);
    return () => {
      loading.current?.abort();
      refreshing.current?.abort();
    };
  }, [name, key, round]);

  return {
    items: state.items,
    error: state.error,
    isLoading: state.isLoading,
    isComplete: state.cursor === null,
    loadMore() {
      if (!state.isLoading && !state.error && state.cursor) load(state.cursor);
    },
    reload: () => setRound((before) => before + 1),
    refresh(combine) {
      refreshing.current?.abort();
      refreshing.current = new AbortController();
      fetchPage(undefined, refreshing.current.signal)
        .then(({ items: page, nextCursor, repeat }) => {
          const change: Change<Item> = (all) => repeat(combine(all, page));
          for (const changes of pending.current) changes.push(change);
          setState((before) => {
            const items = change(before.items);
            // The next page follows the last item of the list.
            return { ...before, items, cursor: items === page ? nextCursor : before.cursor };
          });
        })
        // Without it, the list shows what it has. A list that cannot be loaded reports that itself.
        .catch(() => {});
    },
    update(change) {
      for (const changes of pending.current) changes.push(change);
      setState((before) => ({ ...before, items: change(before.items) }));
    },
  };
}
