import { ConnectionSeal } from '../daemons/gateway/domain/connections/connection-seal.ts';
import { PENDING } from '../daemons/gateway/domain/connections/connection-states.ts';
import { createSeal, type KeyMaterial } from '../kit/security/keys.ts';
import type { ConnectionKey, ConnectionRecord } from '../store/ports/index.ts';

const NOWHERE = 'https://provider.invalid/';

/** Returns an authorized connection whose access token does not expire, without a provider. */
export function placedConnection(
  key: ConnectionKey,
  accessToken: string,
  { keys, id, now }: { keys: KeyMaterial; id: string; now: number },
): ConnectionRecord {
  const seal = new ConnectionSeal(createSeal(keys.masterKey));
  const settings = {
    ...{ provider: null, issuer: null, authorizationUrl: NOWHERE, tokenUrl: NOWHERE, revocationUrl: null },
    ...{ clientId: 'test', secretName: null, clientAuth: 'none', scopes: [], scopeSeparator: ' ' },
    ...{ pkce: true, authorizationParams: {}, tokenLifetimeSeconds: null },
  };
  return {
    ...{ ...key, id, settings: JSON.stringify(settings), sealedSecret: null, createdAt: now },
    ...PENDING,
    status: 'active',
    sealedTokens: seal.tokens(key, { accessToken, refreshToken: null }),
    authorizedAt: now,
  };
}
