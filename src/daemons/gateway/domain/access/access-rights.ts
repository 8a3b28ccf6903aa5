import { ALL_NAMESPACES, type CallerAccess, includesRole, type Role } from '../../../../contracts/index.ts';
import type { AccessStore, RoleRecord } from '../../../../store/ports/index.ts';
import type { ChangeFeed } from '../../../membership/change-feed.ts';

/** Data of an authenticated caller that roles and scopes refer to. */
export interface AccessSubject {
  hostId: string;
  /** Claims of a token of the identity provider. */
  claims?: Readonly<Record<string, string | readonly string[]>> | undefined;
}

export interface AccessRightsDeps {
  store: Pick<AccessStore, 'roles' | 'scopes'>;
  feed: Pick<ChangeFeed, 'follow'>;
}

type NamespaceRoles = Map<string, Role>;

/**
 * Keeps roles and scopes in memory, so that calls read no store. The change feed reloads them after a change by any
 * process. @spec docs/gateway.md "Roles"
 */
export class AccessRights {
  readonly #store: AccessRightsDeps['store'];
  readonly #listeners: Array<() => void> = [];
  #roles: readonly RoleRecord[] = [];
  #byHost = new Map<string, NamespaceRoles>();
  #byClaim = new Map<string, NamespaceRoles>();
  #scopesByHost = new Map<string, readonly string[]>();
  #scopesByClient = new Map<string, readonly string[]>();
  /** The load in progress or the last one. Loads run one after another, so that the newest data wins. */
  #loading: Promise<void> = Promise.resolve();

  private constructor(store: AccessRightsDeps['store']) {
    this.#store = store;
  }

  static async open({ store, feed }: AccessRightsDeps): Promise<AccessRights> {
    const rights = new AccessRights(store);
    feed.follow('access', () => rights.reload());
    await rights.reload();
    return rights;
  }

  /** All roles, ordered by subject and namespace. */
  get roles(): readonly RoleRecord[] {
    return this.#roles;
  }

  /** Returns whether a role was given to callers with this claim. */
  knowsClaim(name: string, value: string): boolean {
    return this.#byClaim.has(claimSubject(name, value));
  }

  scopesOfClient(clientId: string): readonly string[] | null {
    return this.#scopesByClient.get(clientId) ?? null;
  }

  /**
   * Returns the restrictions of a caller, or undefined if it has neither roles nor scopes. If several roles apply in a
   * namespace, the highest one counts.
   */
  of({ hostId, claims }: AccessSubject): CallerAccess | undefined {
    const scopes = this.#scopesByHost.get(hostId) ?? null;
    const found = [this.#byHost.get(hostId), ...this.#rolesOfClaims(claims)].filter(
      (roles) => roles !== undefined,
    );
    if (found.length === 0) return scopes === null ? undefined : { roles: null, scopes };
    const roles = new Map<string, Role>();
    for (const [namespaceId, role] of found.flatMap((each) => [...each]))
      addHighest(roles, namespaceId, role);
    return { roles, scopes };
  }

  /** Reads all roles and scopes again, then calls the listeners. */
  reload(): Promise<void> {
    this.#loading = this.#loading.catch(() => {}).then(() => this.#load());
    return this.#loading;
  }

  /** Registers a listener for changes by any process. It is called after this process has applied the change. */
  onChanged(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async #load(): Promise<void> {
    const [roles, scopes] = await Promise.all([this.#store.roles(), this.#store.scopes()]);
    this.#roles = roles;
    this.#byHost = new Map();
    this.#byClaim = new Map();
    for (const { subject, hostId, namespaceId, role } of roles) {
      const [index, key] = hostId === null ? [this.#byClaim, subject] : [this.#byHost, hostId];
      const ofKey = index.get(key) ?? new Map<string, Role>();
      addHighest(ofKey, namespaceId, role);
      index.set(key, ofKey);
    }
    this.#scopesByHost = new Map(scopes.map((one) => [one.hostId, one.scopes]));
    this.#scopesByClient = new Map(scopes.map((one) => [one.clientId, one.scopes]));
    for (const listener of this.#listeners) listener();
  }

  #rolesOfClaims(claims: AccessSubject['claims']): Array<NamespaceRoles | undefined> {
    if (!claims || this.#byClaim.size === 0) return [];
    return Object.entries(claims).flatMap(([name, values]) =>
      [values].flat().map((value) => this.#byClaim.get(claimSubject(name, value))),
    );
  }
}

const claimSubject = (name: string, value: string): string => `claim:${name}=${value}`;

/** Adds a role, unless the namespace already has a higher one. */
export function addHighest(roles: NamespaceRoles, namespaceId: string, role: Role): void {
  if (!includesRole(roles.get(namespaceId) ?? null, role)) roles.set(namespaceId, role);
}

/** Returns the caller's role in a namespace: the higher one of the namespace's role and the role for all namespaces. */
export function roleIn(roles: ReadonlyMap<string, Role>, namespaceId: string): Role | null {
  const own = roles.get(namespaceId) ?? null;
  const everywhere = roles.get(ALL_NAMESPACES) ?? null;
  return everywhere !== null && !includesRole(own, everywhere) ? everywhere : own;
}
