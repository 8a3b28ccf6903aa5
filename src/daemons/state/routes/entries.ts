import {
  type Caller,
  deleteState,
  getState,
  incrementState,
  LIMITS,
  listState,
  putState,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { Place, StateEntries } from '../domain/state-entries.ts';

/**
 * Maximum body size. Allows the largest value with every character escaped, plus the surrounding JSON. The size of the
 * value itself is checked later.
 */
const PUT_BODY_BYTES = 6 * LIMITS.stateValueBytes + 1024;

export function entryRoutes(http: Http, { entries }: { entries: StateEntries }): void {
  const auth = 'caller';
  mount(http, getState, { auth }, ({ params, caller }) => entries.get(placeOf(params, caller), params.key));
  mount(http, putState, { auth, bodyLimitBytes: PUT_BODY_BYTES }, async ({ params, body, caller }) => ({
    written: await entries.put(placeOf(params, caller), params.key, body.value, body),
  }));
  mount(http, deleteState, { auth }, async ({ params, caller }) => ({
    deleted: await entries.delete(placeOf(params, caller), params.key),
  }));
  mount(http, incrementState, { auth }, ({ params, body, caller }) =>
    entries.increment(placeOf(params, caller), params.key, body),
  );
  mount(http, listState, { auth }, ({ params, query, caller }) =>
    entries.list(placeOf(params, caller), query),
  );
}

function placeOf({ namespace }: { namespace: string }, { namespaceId }: Caller): Place {
  return { tenant: namespaceId, namespace };
}
