import { hash } from 'node:crypto';
import {
  ALL_NAMESPACES,
  type CallerAccess,
  ROLES,
  type Role,
  type StudioOidc,
} from '../../../../../contracts/index.ts';
import { type AccessRights, type AccessSubject, addHighest } from '../../access/access-rights.ts';

const DEFAULT_NAMESPACE = 'default';
const LOGIN_PREFIX = 'oidc:';

/**
 * Roles of the people who sign in with the identity provider. The session contains the values of the role claim; their
 * roles are looked up at each call. @spec docs/studio.md "Sign in with your identity provider"
 */
export class PersonRoles {
  readonly #oidc: StudioOidc | null;
  readonly #rights: AccessRights;

  constructor(oidc: StudioOidc | null, rights: AccessRights) {
    this.#oidc = oidc;
    this.#rights = rights;
  }

  /** Login id of all sessions. It changes with the provider, so that sessions of another one end. */
  get login(): string {
    const { issuer, clientId, roleClaim } = this.#oidc!;
    return LOGIN_PREFIX + hash('sha256', JSON.stringify([issuer, clientId, roleClaim]), 'base64url');
  }

  /** Returns the values that give a role. Others are left out, because a person can be in hundreds of groups. */
  valuesThatMatter(values: readonly string[]): string[] {
    const { roles, roleClaim } = this.#oidc!;
    return [...new Set(values)].filter(
      (value) => Object.hasOwn(roles, value) || this.#rights.knowsClaim(roleClaim, value),
    );
  }

  /** Returns the claims of a session, or undefined if the session belongs to another provider. */
  claimsOf(login: string | undefined, values: readonly string[]): AccessSubject['claims'] | undefined {
    return this.#oidc && login === this.login ? { [this.#oidc.roleClaim]: values } : undefined;
  }

  /** Returns the namespace of a new session, or null for a person without any role. */
  homeOf(subject: AccessSubject): string | null {
    const configured = this.#configured(subject);
    const given = [...this.of(subject).roles].map(([namespaceId, role]) => ({ namespaceId, role }));
    const [home] = (configured.length > 0 ? configured : given).toSorted(homeFirst);
    if (home === undefined) return null;
    return home.namespaceId === ALL_NAMESPACES ? DEFAULT_NAMESPACE : home.namespaceId;
  }

  /** Returns the roles of a person by the config and by `svc roles`. A person without any has an empty map. */
  of(subject: AccessSubject): CallerAccess & { roles: ReadonlyMap<string, Role> } {
    const given = this.#rights.of(subject);
    const roles = new Map(given?.roles);
    const configured = this.#configured(subject);
    for (const { namespaceId, role } of configured) addHighest(roles, namespaceId, role);
    const actsEverywhere = configured.some(({ namespaceId }) => namespaceId === ALL_NAMESPACES);
    return { roles, scopes: given?.scopes ?? null, actsEverywhere };
  }

  /** Returns the entries of the config that apply. */
  #configured({ claims }: AccessSubject): NamespaceRole[] {
    if (!this.#oidc) return [];
    const values = [claims?.[this.#oidc.roleClaim] ?? []].flat();
    const entries = Object.entries(this.#oidc.roles);
    return entries.filter(([value]) => values.includes(value)).map(([, role]) => role);
  }
}

interface NamespaceRole {
  namespaceId: string;
  role: Role;
}

/**
 * Orders by role, highest first, then all namespaces, then by name. The order of the config is not used, because objects
 * list keys like "42" before others.
 */
function homeFirst(one: NamespaceRole, other: NamespaceRole): number {
  return (
    ROLES.indexOf(other.role) - ROLES.indexOf(one.role) ||
    Number(other.namespaceId === ALL_NAMESPACES) - Number(one.namespaceId === ALL_NAMESPACES) ||
    (one.namespaceId < other.namespaceId ? -1 : 1)
  );
}
