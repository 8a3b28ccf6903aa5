import type {
  CallInput,
  deleteVectors,
  ReplyOf,
  searchVectors,
  upsertVectors,
} from '../../contracts/index.ts';
import type { Analytics } from '../../kit/telemetry/analytics.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import { type AdapterWatch, watched } from './adapter-watch.ts';
import { invalid, optionsArgument } from './arguments.ts';
import { type CallScope, callScope, requirePlatform } from './call-scope.ts';
import { eventFields } from './event-fields.ts';

/** Identifies the caller and a vector collection in the namespace `plugin:<id>`. */
export interface VectorScope extends CallScope {
  namespace: string;
  collection: string;
}

type Body<E extends typeof upsertVectors | typeof searchVectors | typeof deleteVectors> = NonNullable<
  CallInput<E>['body']
>;

/** State service methods that `ctx.vectorStore` uses. The state service validates the input. */
export interface VectorAccess {
  upsert(scope: VectorScope, body: Body<typeof upsertVectors>): Promise<ReplyOf<typeof upsertVectors>>;
  search(scope: VectorScope, body: Body<typeof searchVectors>): Promise<ReplyOf<typeof searchVectors>>;
  delete(scope: VectorScope, body: Body<typeof deleteVectors>): Promise<ReplyOf<typeof deleteVectors>>;
}

const COLLECTION = /^[\w.:-]{1,128}$/;
const DEFAULT_COLLECTION = 'default';

/**
 * Creates `ctx.vectorStore`. Its methods throw PERMISSION_DENIED if the manifest does not request `vectorStore`.
 */
export function createVectorStoreService(
  vectors: VectorAccess,
  analytics: Analytics,
  watch: AdapterWatch,
): PlatformService {
  function scopeOf(context: PlatformCallContext, options: Record<string, unknown>): VectorScope {
    requirePlatform(context.request, 'vectorStore');
    const { collection = DEFAULT_COLLECTION } = options;
    if (typeof collection !== 'string' || !COLLECTION.test(collection))
      throw invalid('the collection must consist of letters, digits and . _ : -');
    return { ...callScope(context), namespace: `plugin:${context.request.plugin.id}`, collection };
  }
  const call = <Value>(method: string, run: () => Promise<Value>) =>
    watched(watch, 'vectorStore', method, run);

  return {
    async upsert(context, [items, options]) {
      const scope = scopeOf(context, optionsArgument(options));
      return (
        await call('upsert', () =>
          vectors.upsert(scope, { items: items as Body<typeof upsertVectors>['items'] }),
        )
      ).value;
    },
    async search(context, [vector, given]) {
      const { collection, ...options } = optionsArgument(given);
      const scope = scopeOf(context, { collection });
      const body = { ...options, vector } as Body<typeof searchVectors>;
      const { value, durationMs } = await call('search', () => vectors.search(scope, body));
      // @spec Standard analytics types: vectorStore.search.completed
      analytics.trackOften('vectorStore.search.completed', {
        ...eventFields(context.request),
        payload: { totalSearches: 1, durationMs },
      });
      return value.matches;
    },
    async delete(context, [ids, options]) {
      const scope = scopeOf(context, optionsArgument(options));
      return (
        await call('delete', () => vectors.delete(scope, { ids: ids as Body<typeof deleteVectors>['ids'] }))
      ).value.deleted;
    },
  };
}
