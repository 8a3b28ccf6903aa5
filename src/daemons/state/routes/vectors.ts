import { type Caller, deleteVectors, searchVectors, upsertVectors } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { CollectionKey } from '../../../store/ports/index.ts';
import type { VectorCollections } from '../domain/vector-collections.ts';

/** Maximum body size: 500 vectors of 1,536 dimensions as JSON, with a margin. */
const UPSERT_BODY_BYTES = 32 * 1024 * 1024;

/** Routes for vector collections. @spec docs/decisions/0053 */
export function vectorRoutes(http: Http, { vectors }: { vectors: VectorCollections }): void {
  const auth = 'caller';
  mount(
    http,
    upsertVectors,
    { auth, bodyLimitBytes: UPSERT_BODY_BYTES },
    async ({ params, body, caller }) => ({
      written: await vectors.upsert(placeOf(params, caller), body.items),
    }),
  );
  mount(http, searchVectors, { auth }, async ({ params, body, caller }) => ({
    matches: await vectors.search(placeOf(params, caller), body),
  }));
  mount(http, deleteVectors, { auth }, async ({ params, body, caller }) => ({
    deleted: await vectors.delete(placeOf(params, caller), body.ids),
  }));
}

function placeOf(params: { namespace: string; collection: string }, { namespaceId }: Caller): CollectionKey {
  return { tenant: namespaceId, ...params };
}
