import { connectionToken } from '../../../contracts/index.ts';
import { createClient } from '../../../http/index.ts';
import { keepTenantSecret } from '../../../kit/telemetry/redact.ts';
import type { ConnectionAccess } from '../../../plugins/index.ts';
import type { Resources } from '../../define-daemon.ts';
import { callOptions } from './call-options.ts';

/**
 * Access to connections, for services other than the gateway. Nothing is cached, so a revocation takes effect at once.
 * This process masks the tokens from now on.
 */
export function createConnectionAccess({ peers, keys }: Pick<Resources, 'peers' | 'keys'>): ConnectionAccess {
  const client = createClient({ url: () => peers.urlOf('gateway'), peer: 'gateway' });
  const options = callOptions(keys);
  return {
    async token(scope, name) {
      const { accessToken } = await client.call(connectionToken, { body: { name } }, options(scope));
      keepTenantSecret({ namespaceId: scope.tenantId, name: `connection ${name} access` }, accessToken);
      return accessToken;
    },
  };
}
