import type { ConnectionStatus } from '../../../../contracts/index.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { ConnectionRecord, ConnectionState } from '../../../../store/ports/index.ts';
import type { LastError, StoredSettings } from './connection-records.ts';
import type { Granted } from './provider/provider-client.ts';

/** Part of the lifetime after which a token is refreshed. */
const REFRESH_AFTER = 0.8;
/** Remaining lifetime below which a token is refreshed before it is given out. */
const MIN_LEFT_MS = seconds(60);
const FIRST_RETRY_MS = seconds(5);
const MAX_RETRY_MS = seconds(60);

/** State of a connection that was never authorized. */
export const PENDING: ConnectionState = {
  status: 'pending',
  sealedTokens: null,
  grantedScopes: null,
  account: null,
  authorizedAt: null,
  expiresAt: null,
  refreshAt: null,
  lastRefreshedAt: null,
  lastError: null,
  failures: 0,
};

const MAX_GRANTED_SCOPES = 200;

/**
 * Returns the scopes in a provider's text. Drops words with characters that RFC 6749, section 3.3, does not allow. GitHub
 * separates scopes by commas.
 */
function scopesOf(text: string): string[] {
  const isScope = (scope: string): boolean => /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(scope);
  return text
    .split(/[\s,]+/)
    .filter(isScope)
    .slice(0, MAX_GRANTED_SCOPES);
}

/** Returns the state after the provider has given tokens. */
export function activeState(
  granted: Granted,
  settings: StoredSettings,
  now: number,
): Omit<ConnectionState, 'sealedTokens' | 'authorizedAt' | 'lastRefreshedAt'> {
  const lifetime = granted.expiresInSeconds ?? settings.tokenLifetimeSeconds;
  const lifetimeMs = lifetime === null ? null : Math.floor(seconds(lifetime));
  return {
    status: 'active',
    grantedScopes: granted.scope === null ? null : JSON.stringify(scopesOf(granted.scope)),
    account: granted.account,
    expiresAt: lifetimeMs === null ? null : now + lifetimeMs,
    refreshAt:
      lifetimeMs === null || granted.refreshToken === null
        ? null
        : now + Math.floor(lifetimeMs * REFRESH_AFTER),
    lastError: null,
    failures: 0,
  };
}

/** Returns the state after a failed refresh that is repeated. `fraction` is a random number below 1. */
export function retryState(record: ConnectionState, lastError: LastError, fraction: number): ConnectionState {
  const failures = record.failures + 1;
  const delayMs = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
  return {
    ...stateOf(record),
    failures,
    refreshAt: lastError.at + Math.round(delayMs * (0.75 + fraction / 4)),
    lastError: JSON.stringify(lastError),
  };
}

/** Returns the state without tokens, after which only a new authorization helps. */
export function endedState(
  record: ConnectionState,
  status: 'failed' | 'revoked',
  lastError: LastError | null,
): ConnectionState {
  return {
    ...stateOf(record),
    status,
    sealedTokens: null,
    expiresAt: null,
    refreshAt: null,
    failures: 0,
    lastError: lastError === null ? null : JSON.stringify(lastError),
  };
}

export function stateOf(record: ConnectionState): ConnectionState {
  const { status, sealedTokens, grantedScopes, account, authorizedAt, expiresAt } = record;
  const { refreshAt, lastRefreshedAt, lastError, failures } = record;
  return {
    ...{ status, sealedTokens, grantedScopes, account, authorizedAt, expiresAt },
    ...{ refreshAt, lastRefreshedAt, lastError, failures },
  };
}

export function statusOf({ status, expiresAt }: ConnectionRecord, now: number): ConnectionStatus {
  return status === 'active' && expiresAt !== null && expiresAt <= now ? 'expired' : status;
}

/**
 * Returns whether a token must be refreshed before its use. Failed refreshes move `refreshAt`, so that a provider that
 * is down does not get a request for each use.
 */
export function needsRefresh({ expiresAt, refreshAt }: ConnectionState, now: number): boolean {
  return expiresAt !== null && refreshAt !== null && refreshAt <= now && expiresAt - now < MIN_LEFT_MS;
}
