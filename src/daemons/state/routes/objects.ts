import {
  type Caller,
  deleteObject,
  LIMITS,
  listObjects,
  readObject,
  statObject,
  writeObject,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { ObjectScope } from '../../../store/ports/index.ts';
import type { StoredObjects } from '../domain/stored-objects.ts';

/** Maximum body size: the largest object as base64, plus the surrounding JSON. */
const WRITE_BODY_BYTES = Math.ceil(LIMITS.storageObjectBytes / 3) * 4 + 1024;

/** Routes for stored objects. @spec docs/decisions/0053 */
export function objectRoutes(http: Http, { objects }: { objects: StoredObjects }): void {
  const auth = 'caller';
  mount(http, readObject, { auth }, ({ params, caller }) =>
    objects.read(scopeOf(params, caller), params.key),
  );
  mount(http, writeObject, { auth, bodyLimitBytes: WRITE_BODY_BYTES }, ({ params, body, caller }) =>
    objects.write(scopeOf(params, caller), params.key, body.data),
  );
  mount(http, deleteObject, { auth }, async ({ params, caller }) => ({
    deleted: await objects.delete(scopeOf(params, caller), params.key),
  }));
  mount(http, statObject, { auth }, ({ params, caller }) =>
    objects.stat(scopeOf(params, caller), params.key),
  );
  mount(http, listObjects, { auth }, ({ params, query, caller }) =>
    objects.list(scopeOf(params, caller), query),
  );
}

function scopeOf({ namespace }: { namespace: string }, { namespaceId }: Caller): ObjectScope {
  return { tenant: namespaceId, namespace };
}
