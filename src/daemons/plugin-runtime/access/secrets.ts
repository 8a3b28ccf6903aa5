import { resolveSecrets } from '../../../contracts/index.ts';
import { createClient } from '../../../http/index.ts';
import { OPERATOR_NAMESPACE, type ReadStoredSecret } from '../../../kit/config/secret-ref.ts';
import { keepSecret, keepTenantSecret } from '../../../kit/telemetry/redact.ts';
import type { SecretAccess } from '../../../plugins/index.ts';
import type { Resources } from '../../define-daemon.ts';
import { callOptions } from './call-options.ts';

/**
 * Access to the secrets of tenants, for services other than the gateway. Nothing is cached, so a new or revoked version
 * takes effect at once. This process masks the values from now on.
 */
export function createSecretAccess({ peers, keys }: Pick<Resources, 'peers' | 'keys'>): SecretAccess {
  const client = createClient({ url: () => peers.urlOf('gateway'), peer: 'gateway' });
  const options = callOptions(keys);
  return {
    async read(scope, names, isUse = true) {
      const { items } = await client.call(
        resolveSecrets,
        { body: { names: [...names], isUse } },
        options(scope),
      );
      for (const { name, value } of items) keepTenantSecret({ namespaceId: scope.tenantId, name }, value);
      return new Map(items.map(({ name, value }) => [name, value]));
    },
  };
}

/**
 * Returns the reader of stored secrets that the config references. Their values belong to the platform, so all that this
 * process records masks them, for every tenant.
 */
export function storedSecrets({ random }: Pick<Resources, 'random'>, access: SecretAccess): ReadStoredSecret {
  return async (name) => {
    const { signal } = new AbortController();
    const ids = { requestId: random.uuid(), traceId: random.uuid().replaceAll('-', '') };
    const values = await access.read({ tenantId: OPERATOR_NAMESPACE, user: null, ...ids, signal }, [name]);
    const value = values.get(name);
    keepSecret([value]);
    return value;
  };
}
