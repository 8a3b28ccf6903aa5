import { hash } from 'node:crypto';
import {
  ALL_NAMESPACES,
  type CallerAccess,
  type Role,
  type StudioOidc,
} from '../../../../../contracts/index.ts';
import { type AccessRights, type AccessSubject, addHighest } from '../../access/access-rights.ts';

const DEFAULT_NAMESPACE = 'default';
const LOGIN_PREFIX = 'oidc:';
/** Bounds the session cookie. A person with more values that matter gets the roles of the first ones. */
const MAX_VALUES = 32;
const MAX_VALUE_CHARS = 1500;

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
    const kept: string[] = [];
    let chars = 0;
    for (const value of new Set(values)) {
      if (!Object.hasOwn(roles, value) && !this.#rights.knowsClaim(roleClaim, value)) continue;
      chars += value.length;
      if (kept.length < MAX_VALUES && chars <= MAX_VALUE_CHARS) kept.push(value);
    }
    return kept;
  }

  /** Returns the claims of a session, or undefined if the session belongs to another provider. */
  claimsOf(login: string | undefined, values: readonly string[]): AccessSubject['claims'] | undefined {
    return this.#oidc && login === this.login ? { [this.#oidc.roleClaim]: values } : undefined;
  }

  /** Returns the namespace of a new session, or null for a person without any role. */
  homeOf(subject: AccessSubject): string | null {
    const { roles } = this.of(subject);
    const first = this.#configured(subject)[0]?.namespaceId ?? [...roles.keys()][0];
    if (first === undefined) return null;
    return first === ALL_NAMESPACES ? DEFAULT_NAMESPACE : first;
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

  /** Returns the entries of the config that apply, in the order of the config. */
  #configured({ claims }: AccessSubject): Array<StudioOidc['roles'][string]> {
    if (!this.#oidc) return [];
    const values = [claims?.[this.#oidc.roleClaim] ?? []].flat();
    const entries = Object.entries(this.#oidc.roles);
    return entries.filter(([value]) => values.includes(value)).map(([, role]) => role);
  }
}
