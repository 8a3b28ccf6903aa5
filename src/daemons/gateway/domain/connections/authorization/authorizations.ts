import { OAUTH_CALLBACK } from '../../../../../contracts/index.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { ConnectionRecord, ConnectionState, ConnectionStore } from '../../../../../store/ports/index.ts';
import type { AuditLog } from '../../audit/audit-log.ts';
import { recordCall } from '../../audit/call-audit.ts';
import type { Subject } from '../../identity/authenticator.ts';
import { maskClientSecret, maskTokens } from '../connection-masks.ts';
import { idOf, type LastError, settingsOf } from '../connection-records.ts';
import type { ConnectionSeal } from '../connection-seal.ts';
import { activeState } from '../connection-states.ts';
import type { Granted, ProviderAccess, ProviderClient } from '../provider/provider-client.ts';
import { ProviderError } from '../provider/provider-error.ts';
import type { ReadClientSecret } from '../read-client-secret.ts';
import type { BrowserCookie } from './browser-cookie.ts';
import type { Link, PendingAuthorizations } from './pending-authorizations.ts';

export interface AuthorizationsDeps {
  store: ConnectionStore;
  seal: ConnectionSeal;
  client: Pick<ProviderClient, 'authorizationUrl' | 'redeem'>;
  pending: PendingAuthorizations;
  cookie: BrowserCookie;
  readClientSecret: ReadClientSecret;
  audit: AuditLog;
  /** Returns the URL at which browsers reach the gateway, without a final slash. */
  baseUrl(): string;
  clock: Clock;
  logger: Logger;
}

/** Why an authorization did not succeed. The page explains it; the log and the connection have the details. */
export type AuthorizationProblem =
  | 'unknown-link'
  | 'unknown-state'
  | 'other-browser'
  | 'removed'
  | 'denied'
  | 'refused'
  | 'unavailable';

export class AuthorizationFailed extends Error {
  readonly problem: AuthorizationProblem;
  /** Error code of OAuth, if the provider was asked. */
  readonly code: string | null;

  constructor(problem: AuthorizationProblem, message: string, code: string | null = null) {
    super(message);
    this.problem = problem;
    this.code = code;
  }
}

/** What a person reads before the browser goes to the provider. */
export interface Invitation {
  connection: string;
  namespaceId: string;
  provider: string;
  scopes: string[];
}

const AUTHORIZED = { needs: 'admin', audit: 'connection.connect', object: 'connection:{name}' } as const;

/**
 * Authorizations by the code flow with PKCE. The state belongs to one connection and one browser, and can be used once,
 * on any gateway. @spec docs/connections.md "Security"
 */
export class Authorizations {
  readonly #deps: AuthorizationsDeps;

  constructor(deps: AuthorizationsDeps) {
    this.#deps = deps;
  }

  /** Describes what a link authorizes. Throws AuthorizationFailed. */
  async describe(ticket: string): Promise<Invitation> {
    const { record } = await this.#open(ticket);
    const { authorizationUrl, scopes } = settingsOf(record);
    const { name: connection, namespaceId } = record;
    return { connection, namespaceId, provider: new URL(authorizationUrl).host, scopes };
  }

  /** Begins the authorization in this browser. Returns the URL of the provider. */
  async begin(ticket: string, subject: Subject): Promise<{ location: string; setCookie: string }> {
    const { client, pending, cookie } = this.#deps;
    const { link, record } = await this.#open(ticket);
    const { browser, setCookie } = cookie.keep(subject.rawHeaders);
    const { state, verifier } = await pending.begin(ticket, link, browser);
    const checks = { redirectUri: this.#callbackUrl().href, state, verifier };
    const url = await client.authorizationUrl(settingsOf(record), checks);
    return { location: url.href, setCookie };
  }

  /** Finishes the authorization with the answer of the provider. `query` begins with `?`. */
  async finish(query: string, subject: Subject): Promise<{ connection: string; account: string | null }> {
    const { store, seal, client, pending, cookie, readClientSecret, clock } = this.#deps;
    const callback = this.#callbackUrl();
    callback.search = query;
    const states = callback.searchParams.getAll('state');
    const taken =
      states.length === 1 ? await pending.take(states[0]!, cookie.read(subject.rawHeaders)) : 'unknown';
    if (taken === 'unknown')
      throw new AuthorizationFailed(
        'unknown-state',
        'The state is unknown, was used before, or has expired.',
      );
    if (taken === 'other-browser')
      throw new AuthorizationFailed('other-browser', 'The authorization began in another browser.');
    const record = await this.#find(taken);
    const settings = settingsOf(record);
    let granted: Granted;
    try {
      const access: ProviderAccess = { settings, clientSecret: await readClientSecret(record, settings) };
      maskClientSecret(record, access.clientSecret);
      granted = await client.redeem(access, callback, { state: states[0]!, verifier: taken.verifier });
    } catch (error) {
      throw await this.#refused(record, error);
    }
    maskTokens(record, granted);
    const now = clock.now();
    const { accessToken, refreshToken } = granted;
    const active = activeState(granted, settings, now);
    const state: ConnectionState = {
      ...active,
      // Without `scope`, the provider has granted what was asked for (RFC 6749, 5.1).
      grantedScopes: active.grantedScopes ?? JSON.stringify(settings.scopes),
      sealedTokens: seal.tokens(record, { accessToken, refreshToken }),
      authorizedAt: now,
      lastRefreshedAt: null,
    };
    if (!(await store.settle(idOf(record), state))) throw removed();
    await this.#recordSuccess(taken, subject);
    return { connection: record.name, account: state.account };
  }

  /** Logs a failure. The query is not logged, because it contains the code. */
  explain(error: AuthorizationFailed, { requestId, traceId, ip }: Subject): void {
    this.#deps.logger.diagnostic(
      {
        domain: 'connections',
        event: 'connection.authorization_failed',
        level: 'warn',
        reasonCode: 'CONNECTION_AUTHORIZATION_FAILED',
        message: `An authorization from ${ip} failed: ${error.message}`,
        outcome: 'refused',
        evidence: { ip, problem: error.problem, code: error.code },
      },
      { requestId, traceId },
    );
  }

  async #open(ticket: string): Promise<{ link: Link; record: ConnectionRecord }> {
    const link = await this.#deps.pending.findLink(ticket);
    if (!link)
      throw new AuthorizationFailed('unknown-link', 'The link is unknown, was used before, or has expired.');
    return { link, record: await this.#find(link) };
  }

  async #find(link: Link): Promise<ConnectionRecord> {
    const record = await this.#deps.store.find(link);
    if (record?.id !== link.id) throw removed();
    return record;
  }

  /** Records in the connection why the provider gave no tokens. */
  async #refused(record: ConnectionRecord, error: unknown): Promise<AuthorizationFailed> {
    const { store, clock } = this.#deps;
    const { code, message } =
      error instanceof ProviderError
        ? error
        : { code: 'failed', message: 'The client secret could not be read.' };
    const lastError: LastError = { code, message, at: clock.now() };
    await store.noteRefusal(idOf(record), JSON.stringify(lastError));
    const isDown = code === 'unreachable' || code === 'timeout';
    const problem = code === 'access_denied' ? 'denied' : isDown ? 'unavailable' : 'refused';
    return new AuthorizationFailed(problem, `The connection "${record.name}": ${message}`, code);
  }

  /** The actor is who asked for the link. The browser at the provider is not signed in here. */
  async #recordSuccess({ hostId, namespaceId, name }: Link, { requestId, traceId }: Subject): Promise<void> {
    const call = {
      caller: { hostId, namespaceId },
      rule: AUTHORIZED,
      params: { name },
      path: OAUTH_CALLBACK,
      ...{ requestId, traceId },
    };
    await recordCall(this.#deps.audit, call, { status: 200, body: null, reply: null }, this.#deps.logger);
  }

  #callbackUrl(): URL {
    return new URL(`${this.#deps.baseUrl()}${OAUTH_CALLBACK}`);
  }
}

function removed(): AuthorizationFailed {
  return new AuthorizationFailed('removed', 'The connection was deleted meanwhile.');
}
