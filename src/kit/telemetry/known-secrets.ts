import { SecretMatcher } from './secret-matcher.ts';

export const MASK = '[redacted]';

/** Minimum length of a registered secret. Masking shorter values would also mask ordinary words. */
const MIN_VALUE_CHARS = 8;
/** Values of one secret that stay masked. Former versions can still be in texts of plugins. */
const MAX_VALUES = 8;
/** Secrets of tenants in one process. The secrets that changed longest ago are no longer masked. */
const MAX_TENANT_SECRETS = 20_000;

/** Identifies a secret of a tenant. */
interface SecretId {
  namespaceId: string;
  name: string;
}

/**
 * The secrets that this process has read. Texts of a tenant are searched for the secrets of that tenant only: otherwise
 * a tenant could find the secrets of others by trying which texts are masked.
 */
class KnownSecrets {
  readonly #platform = new Set<string>();
  /** Values by tenant and name, newest first. */
  readonly #tenants = new Map<string, Map<string, string[]>>();
  #tenantSecrets = 0;
  #ofPlatform: SecretMatcher | undefined;
  #ofAllTenants: SecretMatcher | undefined;
  readonly #ofTenant = new Map<string, SecretMatcher>();

  keep(values: ReadonlyArray<string | null | undefined>): void {
    for (const value of values) {
      if (!value || value.length < MIN_VALUE_CHARS || this.#platform.has(value)) continue;
      this.#platform.add(value);
      this.#ofPlatform = undefined;
    }
  }

  keepOfTenant({ namespaceId, name }: SecretId, value: string): void {
    const secrets = this.#tenants.get(namespaceId) ?? new Map<string, string[]>();
    const values = secrets.get(name) ?? [];
    if (values[0] === value || value.length < MIN_VALUE_CHARS) return;
    if (values.length === 0) this.#makeRoom();
    secrets.set(name, [value, ...values.filter((former) => former !== value)].slice(0, MAX_VALUES));
    this.#tenants.set(namespaceId, secrets);
    this.#ofTenant.delete(namespaceId);
    this.#ofAllTenants = undefined;
  }

  /** Returns whether the process has read a secret of the tenant. */
  has(tenantId: string): boolean {
    return this.#tenants.has(tenantId);
  }

  maskOfTenant(text: string, tenantId: string): string {
    const secrets = this.#tenants.get(tenantId);
    if (!secrets) return text;
    let matcher = this.#ofTenant.get(tenantId);
    if (!matcher) {
      matcher = new SecretMatcher([...secrets.values()].flat(), MASK);
      this.#ofTenant.set(tenantId, matcher);
    }
    return matcher.mask(text);
  }

  /** Masks secrets of the platform, and those of one tenant or of all tenants. */
  mask(text: string, tenantId: string | undefined): string {
    const masked = this.#platform.size === 0 ? text : this.#platformMatcher().mask(text);
    if (this.#tenants.size === 0) return masked;
    return tenantId === undefined ? this.#allMatcher().mask(masked) : this.maskOfTenant(masked, tenantId);
  }

  #platformMatcher(): SecretMatcher {
    this.#ofPlatform ??= new SecretMatcher(this.#platform, MASK);
    return this.#ofPlatform;
  }

  #allMatcher(): SecretMatcher {
    if (!this.#ofAllTenants) {
      const values = [...this.#tenants.values()].flatMap((secrets) => [...secrets.values()].flat());
      this.#ofAllTenants = new SecretMatcher(values, MASK);
    }
    return this.#ofAllTenants;
  }

  #makeRoom(): void {
    if (this.#tenantSecrets < MAX_TENANT_SECRETS) {
      this.#tenantSecrets++;
      return;
    }
    const [tenantId, secrets] = this.#tenants.entries().next().value!;
    secrets.delete(secrets.keys().next().value!);
    if (secrets.size === 0) this.#tenants.delete(tenantId);
    this.#ofTenant.delete(tenantId);
  }
}

const known = new KnownSecrets();

/**
 * Registers secrets, which all loggers of this process mask from now on. Values shorter than MIN_VALUE_CHARS are
 * ignored.
 */
export function keepSecret(values: ReadonlyArray<string | null | undefined>): void {
  known.keep(values);
}

/** Registers a value of a tenant's secret, which is masked from now on in all that this process records. */
export function keepTenantSecret(id: SecretId, value: string): void {
  known.keepOfTenant(id, value);
}

/** Masks registered values: those of the platform, and those of the tenant, or without a tenant of all tenants. */
export function maskKnownSecrets(text: string, tenantId?: string): string {
  return known.mask(text, tenantId);
}

/** Masks the tenant's secrets in a text. */
export function maskTenantSecrets(text: string, tenantId: string): string {
  return known.maskOfTenant(text, tenantId);
}

/** Returns whether this process has read a secret of the tenant. */
export function hasTenantSecrets(tenantId: string): boolean {
  return known.has(tenantId);
}

/**
 * Masks the tenant's secrets in all texts, names and numbers of a JSON value. Returns the value itself if it contains
 * none.
 */
export function maskTenantSecretsIn<Value>(value: Value, tenantId: string): Value {
  return known.has(tenantId) ? (maskedValue(value, tenantId) as Value) : value;
}

function maskedValue(value: unknown, tenantId: string): unknown {
  if (typeof value === 'string') return known.maskOfTenant(value, tenantId);
  if (typeof value === 'number') {
    const text = String(value);
    const masked = known.maskOfTenant(text, tenantId);
    return masked === text ? value : masked;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => maskedValue(item, tenantId));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  const entries = Object.entries(value).map(([name, item]): [string, unknown] => [
    known.maskOfTenant(name, tenantId),
    maskedValue(item, tenantId),
  ]);
  const own = Object.entries(value);
  const isSame = entries.every(([name, item], index) => name === own[index]![0] && item === own[index]![1]);
  return isSame ? value : Object.fromEntries(entries);
}
