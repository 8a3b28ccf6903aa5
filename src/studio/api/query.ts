import { QueryClient, QueryObserver } from '@tanstack/query-core';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { ApiError, call, type EndpointName, type Input, type Reply } from './call.ts';

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) => count < 2 && error instanceof ApiError && [0, 502, 503].includes(error.status),
    },
  },
});

export interface QueryState<T> {
  data: T | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
  reload(): void;
}

export interface QueryOptions {
  /** Interval of repeated calls, in ms. */
  everyMs?: number;
  enabled?: boolean;
}

/** Calls an endpoint when a component is shown, and again when the input changes. */
export function useQuery<Name extends EndpointName>(
  name: Name,
  input: Input<Name>,
  options?: QueryOptions,
): QueryState<Reply<Name>> {
  return useResult(name, JSON.stringify(input), (signal) => call(name, input, { signal }), options);
}

/** Reads what belongs to an endpoint when a component is shown, and again when the key changes. */
export function useResult<T>(
  name: EndpointName,
  key: string,
  read: (signal: AbortSignal) => Promise<T>,
  { everyMs, enabled = true }: QueryOptions = {},
): QueryState<T> {
  const observer = useMemo(
    () =>
      new QueryObserver<T, ApiError>(client, {
        queryKey: [name, key],
        queryFn: ({ signal }) => read(signal),
        refetchInterval: everyMs ?? false,
        enabled,
      }),
    [name, key, everyMs, enabled],
  );
  const [state, setState] = useState(() => observer.getCurrentResult());
  useEffect(() => {
    setState(observer.getCurrentResult());
    return observer.subscribe(setState);
  }, [observer]);
  const { data, error, isPending } = state;
  return {
    data,
    error: error ?? undefined,
    isLoading: isPending && enabled,
    reload: () => void observer.refetch(),
  };
}

/** Marks the results of endpoints as outdated, so that open screens load them again. */
export function outdate(...names: EndpointName[]): void {
  for (const name of names) void client.invalidateQueries({ queryKey: [name] });
}

/** Deletes all results, for example after a sign-out. */
export function clearQueries(): void {
  client.clear();
}
