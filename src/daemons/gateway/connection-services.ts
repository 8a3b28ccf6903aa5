import { createSeal, deriveKey } from '../../kit/security/keys.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { OutgoingClient } from '../outgoing/outgoing-client.ts';
import type { AuditLog } from './domain/audit/audit-log.ts';
import { Authorizations } from './domain/connections/authorization/authorizations.ts';
import { BrowserCookie } from './domain/connections/authorization/browser-cookie.ts';
import {
  AUTHORIZATION_MS,
  PendingAuthorizations,
} from './domain/connections/authorization/pending-authorizations.ts';
import { ConnectionAdmin } from './domain/connections/connection-admin.ts';
import { ConnectionHealth } from './domain/connections/connection-health.ts';
import { ConnectionRefresher } from './domain/connections/connection-refresher.ts';
import { ConnectionSeal } from './domain/connections/connection-seal.ts';
import { ConnectionTokens } from './domain/connections/connection-tokens.ts';
import { ProviderClient } from './domain/connections/provider/provider-client.ts';
import { clientSecrets, type ReadStoredSecret } from './domain/connections/read-client-secret.ts';
import type { Vault } from './domain/vault/vault.ts';
import { cookieScope } from './identity-services.ts';

const PURPOSE = 'connection-authorizations';

export interface ConnectionServicesDeps {
  store: GatewayStore;
  vault: Vault;
  audit: AuditLog;
}

/** Builds the services for OAuth 2 connections. @spec docs/connections.md */
export function connectionServices(
  resources: Resources,
  { store: { connections: store, cache }, vault, audit }: ConnectionServicesDeps,
  stack: AsyncDisposableStack,
) {
  const { config, keys, clock, random, logger, address } = resources;
  const { allow, allowPrivateAddresses } = config.outgoing;
  const outgoing = stack.adopt(
    new OutgoingClient({ allowedHosts: allow, setting: 'outgoing.allow' }),
    (opened) => opened.close(),
  );
  const seal = new ConnectionSeal(createSeal(keys.masterKey, keys.previousMasterKeys));
  const readStoredSecret: ReadStoredSecret = async (namespaceId, name) =>
    (await vault.read(namespaceId, [name], true)).get(name);
  const readClientSecret = clientSecrets(seal, readStoredSecret);
  const client = new ProviderClient({ outgoing, mayBePrivate: allowPrivateAddresses });
  const baseUrl = () => (config.gateway.publicUrl ?? `http://localhost:${address.port}`).replace(/\/+$/, '');
  const pending = new PendingAuthorizations({
    ...{ cache, clock, random },
    seal: createSeal(deriveKey(keys.internalSecret, PURPOSE)),
  });
  const tokens = new ConnectionTokens({ store, seal, client, readClientSecret, clock, random, logger });
  stack.adopt(new ConnectionRefresher({ store, tokens, clock, logger }), (opened) => opened.close());
  const cookie = new BrowserCookie({ ...cookieScope(resources), random, maxAgeMs: AUTHORIZATION_MS });
  return {
    connectionTokens: tokens,
    connectionHealth: new ConnectionHealth({ store, clock }),
    connectionAdmin: new ConnectionAdmin({
      ...{ store, seal, client, tokens, pending, readStoredSecret, baseUrl, clock, random },
      requirePublic: (url) => {
        if (!allowPrivateAddresses) outgoing.requirePublic(url);
      },
    }),
    authorizations: new Authorizations({
      ...{ store, seal, client, pending, cookie, readClientSecret, audit, baseUrl, clock, logger },
    }),
  };
}
