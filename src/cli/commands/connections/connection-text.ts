import type { Connection, ConnectionStatus } from '../../../contracts/index.ts';
import type { Style } from '../../style.ts';
import { pairs } from '../../table.ts';
import { timeText } from '../../time-text.ts';

export function statusText(status: ConnectionStatus, style: Style): string {
  if (status === 'active') return style.green(status);
  return status === 'pending' ? style.yellow(status) : style.red(status);
}

/** Formats a connection for the terminal. */
export function connectionText(connection: Connection, style: Style): string {
  const { name, status, provider, issuer, tokenUrl, redirectUri, clientId, account } = connection;
  const { scopes, grantedScopes, authorizedAt, expiresAt, lastRefreshedAt, nextRefreshAt, lastError } =
    connection;
  const isActive = status === 'active' || status === 'expired';
  return pairs(
    [
      ['connection', name],
      ['status', statusText(status, style)],
      ['provider', provider ?? issuer ?? new URL(tokenUrl).host],
      ['account', account ?? '-'],
      ['client', clientId],
      ['redirect uri', redirectUri],
      ['scopes', (grantedScopes ?? scopes).join(' ') || '-'],
      ['authorized', timeText(authorizedAt)],
      ...(isActive
        ? ([
            ['expires', expiresAt === null ? 'not known' : timeText(expiresAt)],
            ['refreshed', timeText(lastRefreshedAt)],
            ['next refresh', nextRefreshAt === null ? 'none' : timeText(nextRefreshAt)],
          ] as Array<[string, string]>)
        : []),
      ...(lastError
        ? ([['last error', `${lastError.message} (${timeText(lastError.at)})`]] as Array<[string, string]>)
        : []),
    ],
    style,
  );
}

/** Formats a connection with its link, if it waits for a person. */
export function authorizingText(connection: Connection & { authorizeUrl?: string }, style: Style): string {
  const { authorizeUrl } = connection;
  const facts = connectionText(connection, style);
  return authorizeUrl === undefined
    ? facts
    : `${facts}\n\nOpen this link within ten minutes:\n${authorizeUrl}`;
}
