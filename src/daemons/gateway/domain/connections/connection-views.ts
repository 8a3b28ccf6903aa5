import type { Connection } from '../../../../contracts/index.ts';
import type { ConnectionRecord } from '../../../../store/ports/index.ts';
import { lastErrorOf, settingsOf } from './connection-records.ts';
import { statusOf } from './connection-states.ts';

/** Returns a connection as the API shows it, without its secrets. */
export function connectionView(
  record: ConnectionRecord,
  { redirectUri, now }: { redirectUri: string; now: number },
): Connection {
  const { name, account, createdAt, authorizedAt, expiresAt, refreshAt, lastRefreshedAt } = record;
  const settings = settingsOf(record);
  const { provider, issuer, authorizationUrl, tokenUrl, revocationUrl, clientId, secretName, scopes } =
    settings;
  return {
    name,
    status: statusOf(record, now),
    ...{ provider, issuer, authorizationUrl, tokenUrl, revocationUrl, redirectUri, clientId },
    clientSecret: secretOf(secretName, record.sealedSecret),
    scopes,
    grantedScopes: record.grantedScopes === null ? null : (JSON.parse(record.grantedScopes) as string[]),
    account,
    refreshes: refreshAt !== null,
    ...{ createdAt, authorizedAt, expiresAt, lastRefreshedAt },
    nextRefreshAt: refreshAt,
    lastError: lastErrorOf(record),
  };
}

function secretOf(secretName: string | null, sealedSecret: string | null): Connection['clientSecret'] {
  if (secretName !== null) return { secret: secretName };
  return sealedSecret === null ? null : 'stored';
}
