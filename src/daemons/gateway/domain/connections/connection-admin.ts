import {
  type ClientSecret,
  type Connection,
  type ConnectionChange,
  type ConnectionSettings,
  OAUTH_CALLBACK,
  OAUTH_START,
} from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { ConnectionKey, ConnectionRecord, ConnectionStore } from '../../../../store/ports/index.ts';
import type { PendingAuthorizations } from './authorization/pending-authorizations.ts';
import { beingRefreshed, connectionNotFound, notAuthorized, unavailable } from './connection-errors.ts';
import { maskClientSecret } from './connection-masks.ts';
import { idOf, settingsOf } from './connection-records.ts';
import type { ConnectionSeal } from './connection-seal.ts';
import { endedState, PENDING } from './connection-states.ts';
import { type ConnectionTokens, isNewer } from './connection-tokens.ts';
import { connectionView } from './connection-views.ts';
import type { ProviderClient } from './provider/provider-client.ts';
import { changedSettings, resolveSettings } from './provider/resolve-settings.ts';
import { type ReadStoredSecret, secretNotFound } from './read-client-secret.ts';

export interface ConnectionAdminDeps {
  store: ConnectionStore;
  seal: ConnectionSeal;
  client: Pick<ProviderClient, 'discover'>;
  tokens: ConnectionTokens;
  pending: PendingAuthorizations;
  readStoredSecret: ReadStoredSecret;
  /** Throws PERMISSION_DENIED for a URL with a private address that the config does not allow. */
  requirePublic(url: string): void;
  /** Returns the URL at which browsers reach the gateway, without a final slash. */
  baseUrl(): string;
  clock: Clock;
  random: Random;
}

type NewConnection = ConnectionSettings & { name: string };
type Authorizing = Connection & { authorizeUrl: string; authorizeUrlExpiresAt: number };

const MAX_CONNECTIONS = 500;
/** Attempts to change a connection while other callers change it. */
const MAX_ATTEMPTS = 5;

/** Connections as administrators manage them. @spec docs/connections.md */
export class ConnectionAdmin {
  readonly #deps: ConnectionAdminDeps;

  constructor(deps: ConnectionAdminDeps) {
    this.#deps = deps;
  }

  /** `hostId` is the caller, for the audit log. Throws CONFLICT if the name is taken. */
  async create(
    { name, clientSecret, ...settings }: NewConnection,
    namespaceId: string,
    hostId: string,
  ): Promise<Authorizing> {
    const { store, seal, client, clock, random } = this.#deps;
    const key = { namespaceId, name };
    if (await store.find(key)) throw taken(name);
    if ((await store.list(namespaceId)).length >= MAX_CONNECTIONS)
      throw new PlatformError(
        'QUOTA_EXCEEDED',
        `The namespace has ${MAX_CONNECTIONS} connections, the maximum.`,
      );
    const secret = await this.#secretOf(namespaceId, clientSecret);
    const resolved = await resolveSettings(client, settings, {
      secretName: secret.name,
      hasSecret: clientSecret !== undefined,
    });
    for (const url of [resolved.authorizationUrl, resolved.tokenUrl, resolved.revocationUrl])
      if (url !== null) this.#deps.requirePublic(url);
    maskClientSecret(key, secret.text);
    const record: ConnectionRecord = {
      ...{ ...key, id: random.uuid(), settings: JSON.stringify(resolved) },
      sealedSecret: secret.text === null ? null : seal.secret(key, secret.text),
      createdAt: clock.now(),
      ...PENDING,
    };
    if (!(await store.create(record))) throw taken(name);
    return this.#withLink(record, hostId);
  }

  async list(namespaceId: string): Promise<Connection[]> {
    return (await this.#deps.store.list(namespaceId)).map((record) => this.#view(record));
  }

  async get(key: ConnectionKey): Promise<Connection> {
    return this.#view(await this.#find(key));
  }

  /**
   * Changes settings. The next request to the provider uses a new client secret; scopes and parameters take effect with
   * the next authorization. Throws CONFLICT if other callers change the connection meanwhile.
   */
  async update(key: ConnectionKey, change: ConnectionChange): Promise<Connection> {
    const { store, seal } = this.#deps;
    const { clientSecret } = change;
    const secret =
      clientSecret === undefined
        ? undefined
        : await this.#secretOf(key.namespaceId, clientSecret ?? undefined);
    if (secret) maskClientSecret(key, secret.text);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const record = await this.#find(key);
      const { settings, sealedSecret } = record;
      const former = settingsOf(record);
      const hadSecret = sealedSecret !== null || former.secretName !== null;
      const changed = changedSettings(former, change, secret && changedSecret(secret), hadSecret);
      const sealed = secret?.text == null ? null : seal.secret(key, secret.text);
      const next = { settings: JSON.stringify(changed), sealedSecret: secret ? sealed : sealedSecret };
      if (await store.configure(idOf(record), next, { settings, sealedSecret }))
        return this.#view({ ...record, ...next });
    }
    throw new PlatformError(
      'CONFLICT',
      `The connection "${key.name}" was changed by other callers during this update. Try again.`,
    );
  }

  /** Makes a link with which a person authorizes the connection, for the first time or again. */
  async authorize(key: ConnectionKey, hostId: string): Promise<Authorizing> {
    return this.#withLink(await this.#find(key), hostId);
  }

  /** Refreshes now. Throws if the provider did not refresh. */
  async refresh(key: ConnectionKey): Promise<Connection> {
    const { tokens, clock } = this.#deps;
    const before = await this.#find(key);
    if (before.status !== 'active') throw notAuthorized(before);
    if (tokens.openTokens(before)?.refreshToken == null)
      throw new PlatformError(
        'CONFLICT',
        `The provider gave the connection "${key.name}" no refresh token. Authorize it again for a new access token.`,
        { details: { hint: `svc connections authorize ${key.name}` } },
      );
    const after = await tokens.refresh(before);
    if (after.status !== 'active') throw notAuthorized(after);
    if (after.failures > 0) throw unavailable(after, clock.now());
    if (!isNewer(after, before)) throw beingRefreshed(after);
    return this.#view(after);
  }

  async revoke(key: ConnectionKey): Promise<Connection & { revokedAtProvider: boolean }> {
    const { store, tokens } = this.#deps;
    const record = await this.#find(key);
    const revokedAtProvider = await tokens.revoke(record, tokens.openTokens(record));
    const state = endedState(record, 'revoked', null);
    if (!(await store.settle(idOf(record), state))) throw connectionNotFound(key);
    return { ...this.#view({ ...record, ...state }), revokedAtProvider };
  }

  async remove(key: ConnectionKey): Promise<{ deleted: true; revokedAtProvider: boolean }> {
    const { store, tokens } = this.#deps;
    const record = await this.#find(key);
    const revokedAtProvider = await tokens.revoke(record, this.#tokensOrNull(record));
    if (!(await store.remove(idOf(record)))) throw connectionNotFound(key);
    return { deleted: true, revokedAtProvider };
  }

  /** A connection whose tokens cannot be decrypted can still be removed. */
  #tokensOrNull(record: ConnectionRecord) {
    try {
      return this.#deps.tokens.openTokens(record);
    } catch {
      return null;
    }
  }

  async #find(key: ConnectionKey): Promise<ConnectionRecord> {
    const record = await this.#deps.store.find(key);
    if (!record) throw connectionNotFound(key);
    return record;
  }

  async #withLink(record: ConnectionRecord, hostId: string): Promise<Authorizing> {
    const { pending, baseUrl } = this.#deps;
    const { ticket, expiresAt } = await pending.createLink(record, hostId);
    const authorizeUrl = `${baseUrl()}${OAUTH_START}/${ticket}`;
    return { ...this.#view(record), authorizeUrl, authorizeUrlExpiresAt: expiresAt };
  }

  async #secretOf(
    namespaceId: string,
    secret: ClientSecret | undefined,
  ): Promise<{ text: string | null; name: string | null }> {
    if (secret === undefined) return { text: null, name: null };
    if (typeof secret === 'string') return { text: secret, name: null };
    const stored = await this.#deps.readStoredSecret(namespaceId, secret.secret);
    if (stored === undefined) throw secretNotFound(namespaceId, secret.secret);
    return { text: null, name: secret.secret };
  }

  #view(record: ConnectionRecord): Connection {
    const { baseUrl, clock } = this.#deps;
    return connectionView(record, { redirectUri: `${baseUrl()}${OAUTH_CALLBACK}`, now: clock.now() });
  }
}

const changedSecret = ({ text, name }: { text: string | null; name: string | null }) => ({
  secretName: name,
  hasSecret: text !== null || name !== null,
});

function taken(name: string): PlatformError {
  return new PlatformError(
    'CONFLICT',
    `The namespace already has a connection "${name}". Delete it, or choose another name.`,
    {
      details: { connection: name, hint: `svc connections show ${name}` },
    },
  );
}
