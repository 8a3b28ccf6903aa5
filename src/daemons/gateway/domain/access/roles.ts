import { ALL_NAMESPACES, type Caller, type Role, type RoleGrant } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { AppendLink } from '../../../../kit/security/audit-chain.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { AccessStore, ClientRecord, ClientStore, RoleRecord } from '../../../../store/ports/index.ts';
import type { ChangeFeed } from '../../../membership/change-feed.ts';
import type { Admins } from '../identity/admins.ts';
import { pageOf } from '../page.ts';
import type { AccessRights } from './access-rights.ts';

export interface RolesDeps {
  store: AccessStore;
  clients: Pick<ClientStore, 'find'>;
  rights: AccessRights;
  feed: Pick<ChangeFeed, 'spread'>;
  admins: Admins;
  /** The operator's client, which roles must not lock out. */
  operator: Pick<ClientRecord, 'clientId' | 'hostId'> | null;
  clock: Clock;
}

export interface RoleQuery {
  subject?: string | undefined;
  namespaceId?: string | undefined;
  limit: number;
  cursor?: string | undefined;
}

/** Gives and takes roles of callers and scopes of clients. @spec docs/gateway.md "Roles" */
export class Roles {
  readonly #deps: RolesDeps;

  constructor(deps: RolesDeps) {
    this.#deps = deps;
  }

  /** Lists roles. Callers who are not administrators see those that apply in their namespace. */
  list(caller: Caller, { subject, namespaceId, limit, cursor }: RoleQuery) {
    const { admins, rights } = this.#deps;
    const scope = namespaceId === ALL_NAMESPACES ? namespaceId : admins.listScope(caller, namespaceId);
    const shown = rights.roles.filter(
      (role) =>
        (subject === undefined || role.subject === subject) &&
        (scope === undefined || role.namespaceId === scope || role.namespaceId === ALL_NAMESPACES),
    );
    const start = cursor === undefined ? 0 : shown.findIndex((role) => cursorOf(role) === cursor) + 1;
    return pageOf(shown.slice(start, start + limit + 1), limit, cursorOf, grantOf);
  }

  /** Gives a role. It is in force on all gateways when the promise resolves, or one second later. */
  async grant(
    caller: Caller,
    asked: { subject: string; role: Role; namespaceId?: string | undefined },
    audit: AppendLink,
  ): Promise<RoleGrant & { previous: Role | null }> {
    const { store, admins, clock } = this.#deps;
    const { subject, role } = asked;
    admins.require(caller);
    const record: RoleRecord = {
      subject,
      namespaceId: asked.namespaceId ?? caller.namespaceId,
      role,
      hostId: await this.#hostOf(subject),
      grantedBy: caller.hostId,
      grantedAt: clock.now(),
    };
    this.#refuseOperator(record.hostId);
    const previous = await store.grant(record, audit);
    await this.#putInForce();
    return { ...grantOf(record), previous };
  }

  async revoke(
    caller: Caller,
    asked: { subject: string; namespaceId?: string | undefined },
    audit: AppendLink,
  ): Promise<void> {
    const { store, admins } = this.#deps;
    admins.require(caller);
    const { subject } = asked;
    const namespaceId = asked.namespaceId ?? caller.namespaceId;
    if (!(await store.revoke({ subject, namespaceId }, audit)))
      throw new PlatformError(
        'NOT_FOUND',
        `"${subject}" has no role for the namespace "${namespaceId}"; list all with \`svc roles list\`.`,
      );
    await this.#putInForce();
  }

  /** Sets the scopes of a client. Null removes them, so that scopes no longer restrict the client. */
  async setScopes(
    caller: Caller,
    { clientId, scopes }: { clientId: string; scopes: string[] | null },
    audit: AppendLink,
  ): Promise<void> {
    this.#deps.admins.require(caller);
    const { hostId } = await this.#clientOf(clientId);
    this.#refuseOperator(hostId);
    await this.#deps.store.setScopes({ clientId, hostId, scopes: scopes ?? [] }, audit);
    await this.#putInForce();
  }

  /** Sets the scopes of a client before it is created, so that it never exists without them. */
  async scopeNewClient(client: Pick<ClientRecord, 'clientId' | 'hostId'>, scopes: string[]): Promise<void> {
    const { clientId, hostId } = client;
    await this.#deps.store.setScopes({ clientId, hostId, scopes });
    await this.#putInForce();
  }

  async #putInForce(): Promise<void> {
    const { rights, feed } = this.#deps;
    await rights.reload();
    await feed.spread();
  }

  /** Returns the host id of a client or host, or null for a claim. */
  async #hostOf(subject: string): Promise<string | null> {
    const [kind] = subject.split(':', 1);
    const id = subject.slice(kind!.length + 1);
    if (kind === 'claim') return null;
    return kind === 'host' ? id : (await this.#clientOf(id)).hostId;
  }

  async #clientOf(clientId: string): Promise<ClientRecord> {
    const client = await this.#deps.clients.find(clientId);
    if (client) return client;
    throw new PlatformError(
      'NOT_FOUND',
      `There is no client "${clientId}"; list all with \`svc clients list\`.`,
    );
  }

  #refuseOperator(hostId: string | null): void {
    if (hostId === null || hostId !== this.#deps.operator?.hostId) return;
    throw new PlatformError(
      'CONFLICT',
      "This is the operator's client, which must not be restricted, because it could then not give rights back.",
    );
  }
}

const cursorOf = ({ subject, namespaceId }: RoleRecord): string => `${namespaceId}|${subject}`;

const grantOf = ({ hostId: _, ...role }: RoleRecord): RoleGrant => role;
