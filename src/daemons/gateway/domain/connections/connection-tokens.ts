import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type {
  ConnectionId,
  ConnectionKey,
  ConnectionRecord,
  ConnectionState,
  ConnectionStore,
  LeasedConnection,
} from '../../../../store/ports/index.ts';
import { connectionNotFound, notAuthorized, unavailable } from './connection-errors.ts';
import { maskClientSecret, maskTokens } from './connection-masks.ts';
import { idOf, type LastError, settingsOf, type Tokens } from './connection-records.ts';
import type { ConnectionSeal } from './connection-seal.ts';
import { activeState, endedState, needsRefresh, retryState, stateOf } from './connection-states.ts';
import type { Granted, ProviderAccess, ProviderClient } from './provider/provider-client.ts';
import { ProviderError } from './provider/provider-error.ts';
import type { ReadClientSecret } from './read-client-secret.ts';

export interface ConnectionTokensDeps {
  store: ConnectionStore;
  seal: ConnectionSeal;
  client: Pick<ProviderClient, 'refresh' | 'revoke'>;
  readClientSecret: ReadClientSecret;
  clock: Clock;
  random: Random;
  logger: Logger;
}

/** Longer than a refresh can take: the request, and the attempts to store its answer. */
export const LEASE_MS = seconds(60);
/** Attempts to store the answer of the provider. A lost answer can cost the refresh token. */
const STORE_ATTEMPTS = 10;
const STORE_RETRY_MS = seconds(1);
/** Waiting for a refresh of another process takes wall-clock time, even with a test clock. */
const POLL_MS = 100;
const MAX_POLLS = 250;

/**
 * Gives out access tokens, and refreshes them. Of all callers on all gateways, one sends the refresh token: the processes
 * share a lease in the store, and the callers of a process share a promise. @spec docs/decisions/0257
 */
export class ConnectionTokens {
  readonly #deps: ConnectionTokensDeps;
  readonly #refreshing = new Map<string, Promise<ConnectionRecord>>();

  constructor(deps: ConnectionTokensDeps) {
    this.#deps = deps;
  }

  /** Throws NOT_FOUND, CONNECTION_NOT_AUTHORIZED or CONNECTION_UNAVAILABLE. */
  async token(key: ConnectionKey): Promise<{ accessToken: string; expiresAt: number | null }> {
    const { store, clock } = this.#deps;
    const found = await store.find(key);
    if (!found) throw connectionNotFound(key);
    const record = needsRefresh(found, clock.now()) ? await this.refresh(found) : found;
    const tokens = this.openTokens(record);
    if (!tokens) throw notAuthorized(record);
    const { expiresAt } = record;
    if (expiresAt !== null && expiresAt <= clock.now())
      throw record.refreshAt === null ? notAuthorized(record) : unavailable(record, clock.now());
    return { accessToken: tokens.accessToken, expiresAt };
  }

  /** Access for plugin code of this process. */
  readonly access = {
    token: async ({ tenantId }: { tenantId: string }, name: string): Promise<string> =>
      (await this.token({ namespaceId: tenantId, name })).accessToken,
  };

  /**
   * Refreshes the tokens of a record, unless they were replaced since it was read. Returns the record afterwards: it
   * contains the reason if the refresh failed. It is unchanged if another process still holds the lease. Throws NOT_FOUND
   * if the connection was removed.
   */
  refresh(record: ConnectionRecord): Promise<ConnectionRecord> {
    const key = JSON.stringify(idOf(record));
    const running = this.#refreshing.get(key);
    if (running) return running;
    const started = this.#refresh(record).finally(() => this.#refreshing.delete(key));
    this.#refreshing.set(key, started);
    return started;
  }

  /** Returns the tokens in plain text, and makes logs mask them. */
  openTokens(record: ConnectionRecord): Tokens | null {
    const tokens = this.#deps.seal.openTokens(record);
    if (tokens) maskTokens(record, tokens);
    return tokens;
  }

  /** Revokes tokens. Returns whether the provider confirmed it. */
  async revoke(record: ConnectionRecord, tokens: Tokens | null): Promise<boolean> {
    if (!tokens) return false;
    try {
      return await this.#deps.client.revoke(await this.#accessOf(record), tokens);
    } catch (error) {
      const { name, namespaceId } = record;
      this.#deps.logger.diagnostic({
        domain: 'connections',
        event: 'connection.revocation_failed',
        level: 'warn',
        reasonCode: 'CONNECTION_REVOCATION_FAILED',
        message: `The tokens of the connection "${name}" could not be revoked at the provider: ${messageOf(error)}`,
        outcome: 'failed',
        evidence: { connection: name, namespaceId },
      });
      return false;
    }
  }

  async #refresh(seen: ConnectionRecord): Promise<ConnectionRecord> {
    const { store, random } = this.#deps;
    const lease = random.secret(16);
    for (let poll = 0; poll < MAX_POLLS; poll++) {
      const leased = await store.lease(seen, lease, LEASE_MS);
      if (leased) return this.#refreshLeased(seen, leased, lease);
      const current = await store.find(seen);
      if (current?.id !== seen.id) throw connectionNotFound(seen);
      if (isNewer(current, seen)) return current;
      await pause(POLL_MS);
    }
    return seen;
  }

  async #refreshLeased(
    seen: ConnectionRecord,
    leased: LeasedConnection,
    lease: string,
  ): Promise<ConnectionRecord> {
    const refreshToken = this.openTokens(leased)?.refreshToken ?? null;
    if (isNewer(leased, seen) || refreshToken === null) return this.#settle(leased, stateOf(leased), lease);
    const access = await this.#accessOf(leased).catch((error: unknown) => messageOf(error));
    if (typeof access === 'string')
      return this.#settle(leased, this.#failed(leased, secretMissing(access)), lease);
    let granted: Granted;
    try {
      granted = await this.#deps.client.refresh(access, refreshToken);
    } catch (error) {
      return this.#settle(leased, this.#failed(leased, error), lease);
    }
    const { seal, clock } = this.#deps;
    maskTokens(leased, granted);
    const now = clock.now();
    const { accessToken } = granted;
    const active = activeState(granted, access.settings, now);
    const state: ConnectionState = {
      ...active,
      sealedTokens: seal.tokens(leased, { accessToken, refreshToken: granted.refreshToken }),
      grantedScopes: active.grantedScopes ?? leased.grantedScopes,
      account: active.account ?? leased.account,
      authorizedAt: leased.authorizedAt,
      lastRefreshedAt: now,
    };
    return this.#settle(leased, state, lease, granted);
  }

  /** Stores the state. New tokens are handed out only after they are stored. */
  async #settle(
    leased: LeasedConnection,
    state: ConnectionState,
    lease: string,
    granted?: Granted,
  ): Promise<ConnectionRecord> {
    const { store } = this.#deps;
    if (await this.#stored(leased, state, lease)) return { ...leased, ...state };
    // A new authorization, a revocation or a deletion came first, and ended the lease.
    const current = await store.find(leased);
    const isGone = current?.id !== leased.id || current.status === 'revoked';
    if (granted && isGone) await this.revoke(leased, granted);
    if (current?.id !== leased.id) throw connectionNotFound(leased);
    return current;
  }

  async #stored(id: ConnectionId, state: ConnectionState, lease: string): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#deps.store.settle(id, state, lease);
      } catch (error) {
        if (attempt === STORE_ATTEMPTS) throw error;
        await pause(STORE_RETRY_MS);
      }
    }
  }

  /** Returns the state after a failed refresh, and logs it. */
  #failed(leased: LeasedConnection, error: unknown): ConnectionState {
    const { clock, random, logger } = this.#deps;
    const { code, isFinal } = error instanceof ProviderError ? error : { code: 'failed', isFinal: false };
    const { name, namespaceId } = leased;
    const lastError: LastError = { code, message: explained(leased, error, isFinal), at: clock.now() };
    logger.diagnostic({
      domain: 'connections',
      event: isFinal ? 'connection.failed' : 'connection.refresh_failed',
      level: isFinal ? 'error' : 'warn',
      reasonCode: isFinal ? 'CONNECTION_FAILED' : 'CONNECTION_REFRESH_FAILED',
      message: `The connection "${name}" could not be refreshed: ${lastError.message}`,
      outcome: 'failed',
      evidence: { connection: name, namespaceId, code },
    });
    return isFinal
      ? endedState(leased, 'failed', lastError)
      : retryState(leased, lastError, random.fraction());
  }

  async #accessOf(record: ConnectionRecord): Promise<ProviderAccess> {
    const settings = settingsOf(record);
    const clientSecret = await this.#deps.readClientSecret(record, settings);
    maskClientSecret(record, clientSecret);
    return { settings, clientSecret };
  }
}

/** Returns whether a refresh has ended since a record was read. */
export const isNewer = (record: ConnectionRecord, seen: ConnectionRecord): boolean =>
  record.sealedTokens !== seen.sealedTokens || record.failures > seen.failures;

/**
 * A killed process may have received the answer to the old refresh token. A provider with rotation then refuses that
 * token, or even takes its use for a theft.
 */
function explained({ wasInterrupted }: LeasedConnection, error: unknown, isFinal: boolean): string {
  const note =
    wasInterrupted && isFinal
      ? ' An earlier refresh was interrupted, so the provider had probably replaced the refresh token.'
      : '';
  return `${messageOf(error)}${note}`;
}

function messageOf(error: unknown): string {
  return error instanceof ProviderError || (error instanceof Error && error.name === 'PlatformError')
    ? error.message
    : 'An internal error; the log has the details.';
}

function secretMissing(message: string): ProviderError {
  return new ProviderError('client_secret_missing', message);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.after(ms, resolve);
  });
}
