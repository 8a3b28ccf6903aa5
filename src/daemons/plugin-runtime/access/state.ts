import {
  type CallInput,
  deleteState,
  getState,
  incrementState,
  listState,
  putState,
} from '../../../contracts/index.ts';
import { createClient } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { StateAccess, StateScope } from '../../../plugins/index.ts';
import type { Resources } from '../../define-daemon.ts';
import { callOptions } from './call-options.ts';

type PutBody = CallInput<typeof putState>['body'];

/**
 * Implements `ctx.state` and `ctx.cache` by HTTP calls to the state service. Each call contains the tenant of the
 * execution.
 */
export function createStateAccess({ peers, keys }: Pick<Resources, 'peers' | 'keys'>): StateAccess {
  const client = createClient({ url: () => peers.urlOf('state'), peer: 'state' });

  const options = callOptions(keys);

  async function put(scope: StateScope, key: string, body: PutBody): Promise<boolean> {
    const params = { namespace: scope.namespace, key };
    return (await client.call(putState, { params, body }, options(scope))).written;
  }

  return {
    async get(scope, key) {
      try {
        const params = { namespace: scope.namespace, key };
        return await client.call(getState, { params }, options(scope));
      } catch (error) {
        if (error instanceof PlatformError && error.code === 'NOT_FOUND') return undefined;
        throw error;
      }
    },
    async set(scope, key, value, ttlMs) {
      await put(scope, key, { value: value as PutBody['value'], ifAbsent: false, ttlMs });
    },
    setIfAbsent: (scope, key, value, ttlMs) =>
      put(scope, key, { value: value as PutBody['value'], ifAbsent: true, ttlMs }),
    async delete(scope, key) {
      const params = { namespace: scope.namespace, key };
      return (await client.call(deleteState, { params }, options(scope))).deleted;
    },
    async increment(scope, key, by, windowMs) {
      const params = { namespace: scope.namespace, key };
      return (await client.call(incrementState, { params, body: { by, windowMs } }, options(scope))).value;
    },
    list: (scope, query) =>
      client.call(listState, { params: { namespace: scope.namespace }, query }, options(scope)),
  };
}
