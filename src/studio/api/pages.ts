import { useEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, call, type EndpointName, type Input, type Reply } from './call.ts';

/** Endpoints whose answer is a page of items with a cursor. */
type ListName = {
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
  /** Replaces the items, for example by those of a live stream. */
  update(change: (items: readonly T[]) => readonly T[]): void;
}

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
): Pages<ItemOf<Name>> {
  const key = JSON.stringify(query);
  const [state, setState] = useState<State<ItemOf<Name>>>(FIRST);
  const [round, setRound] = useState(0);
  const loading = useRef<AbortController | null>(null);

  const load = (cursor: string | undefined): void => {
    loading.current?.abort();
    const controller = new AbortController();
    loading.current = controller;
    setState((before) => ({ ...before, isLoading: true, error: undefined }));
    const input = { query: { ...query, cursor } } as unknown as Input<Name>;
    call(name, input, { signal: controller.signal })
      .then(({ items, nextCursor }) =>
        setState((before) => ({
          items: cursor === undefined ? items : [...before.items, ...items],
          cursor: nextCursor,
          error: undefined,
          isLoading: false,
        })),
      )
      .catch((error: ApiError) => {
        if (!controller.signal.aborted) setState((before) => ({ ...before, error, isLoading: false }));
      });
  };

  useEffect(() => {
    setState(FIRST);
    load(undefined);
    return () => loading.current?.abort();
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
    update: (change) => setState((before) => ({ ...before, items: change(before.items) })),
  };
}
