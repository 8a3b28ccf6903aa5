import { MAX_SECRET_VERSIONS, MAX_SECRETS, type Secret } from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/data/bounded-cache.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Seal } from '../../../../kit/security/keys.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { keepTenantSecret } from '../../../../kit/telemetry/redact.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { hours } from '../../../../kit/time/duration.ts';
import {
  type SealedVaultVersion,
  sealedColumns,
  type VaultKey,
  type VaultStore,
  type VaultVersion,
} from '../../../../store/ports/index.ts';

/** Precision of `lastUsedAt`. A write for each use would cost more than the use. */
const USE_EVERY_MS = hours(1);
const MAX_REMEMBERED_USES = 10_000;
/** Attempts to add a version while other callers add versions of the same secret. */
const MAX_ATTEMPTS = 20;

export interface VaultDeps {
  store: VaultStore;
  seal: Seal;
  clock: Clock;
  logger: Logger;
}

/**
 * The secrets of tenants. Values are read from the store for each use, so a new or revoked version takes effect on all
 * nodes at once. @spec docs/secrets.md
 */
export class Vault {
  readonly #deps: VaultDeps;
  readonly #noted = createBoundedCache<number>(MAX_REMEMBERED_USES);

  constructor(deps: VaultDeps) {
    this.#deps = deps;
  }

  /** Adds a version. Throws QUOTA_EXCEEDED if the namespace has too many secrets. */
  async set(
    key: VaultKey,
    { value, expiresAt, by }: { value: string; expiresAt: number | null; by: string },
  ): Promise<Secret> {
    const { store, seal, clock } = this.#deps;
    keepTenantSecret(key, value);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const known = await this.list(key.namespaceId);
      const newest = known.find(({ name }) => name === key.name);
      if (!newest && known.length >= MAX_SECRETS) throw tooMany();
      const version = (newest?.version ?? 0) + 1;
      const sealed = seal.seal(value, contextOf({ ...key, version }));
      const next = { ...key, version, sealed, createdAt: clock.now(), createdBy: by, expiresAt };
      if (!(await store.add(next, MAX_SECRET_VERSIONS))) continue;
      const secret = (await this.list(key.namespaceId)).find(({ name }) => name === key.name);
      if (secret) return secret;
    }
    throw new PlatformError(
      'CONFLICT',
      `The secret ${key.name} was changed by other callers during this update. Try again.`,
    );
  }

  async list(namespaceId: string): Promise<Secret[]> {
    const versions = await this.#deps.store.list(namespaceId);
    return [...Map.groupBy(versions, ({ name }) => name).values()].map(secretOf);
  }

  /** Deletes all versions. Throws NOT_FOUND for an unknown secret. */
  async revoke(key: VaultKey): Promise<void> {
    if (await this.#deps.store.revoke(key)) return;
    throw new PlatformError('NOT_FOUND', `The namespace ${key.namespaceId} has no secret ${key.name}.`, {
      details: { hint: 'svc secrets list' },
    });
  }

  /**
   * Returns the newest values by name, without the secrets that do not exist. The values are masked in this process from
   * now on.
   */
  async read(namespaceId: string, names: readonly string[], isUse: boolean): Promise<Map<string, string>> {
    const found = await Promise.all(names.map((name) => this.#deps.store.find({ namespaceId, name })));
    const values = found.flatMap((version): Array<[string, string]> => {
      if (!version) return [];
      const value = this.#open(version);
      keepTenantSecret(version, value);
      if (isUse) this.#noteUse(version);
      return [[version.name, value]];
    });
    return new Map(values);
  }

  /** Access for plugin code of this process. */
  readonly access = {
    read: (scope: { tenantId: string }, names: readonly string[], isUse = true) =>
      this.read(scope.tenantId, names, isUse),
  };

  #open(version: SealedVaultVersion): string {
    try {
      return this.#deps.seal.open(version.sealed, contextOf(version));
    } catch (cause) {
      const message = `The secret ${version.name} of namespace ${version.namespaceId} cannot be decrypted. Set it again.`;
      throw new PlatformError('STORE_ERROR', message, { cause });
    }
  }

  #noteUse(version: SealedVaultVersion): void {
    const { store, clock, logger } = this.#deps;
    const id = contextOf(version);
    const now = clock.now();
    if (now - (this.#noted.get(id) ?? version.lastUsedAt ?? 0) < USE_EVERY_MS) return;
    this.#noted.set(id, now);
    store
      .used(version, now - (now % USE_EVERY_MS))
      .catch((error: unknown) => logger.warn('The use of a secret could not be recorded', { error }));
  }
}

function contextOf({ namespaceId, name, version }: VaultKey & { version: number }): string {
  return sealedColumns('secret').context({ namespace_id: namespaceId, name, version }, 'sealed');
}

function secretOf(versions: readonly VaultVersion[]): Secret {
  const { name, version, createdAt, createdBy, expiresAt } = versions[0]!;
  const uses = versions.flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
  return {
    ...{ name, version, createdAt, createdBy, expiresAt },
    lastUsedAt: uses.length === 0 ? null : Math.max(...uses),
    versions: versions.map((each) => ({
      version: each.version,
      createdAt: each.createdAt,
      createdBy: each.createdBy,
    })),
  };
}

function tooMany(): PlatformError {
  return new PlatformError('QUOTA_EXCEEDED', `A namespace can have at most ${MAX_SECRETS} secrets.`, {
    details: { limit: MAX_SECRETS, hint: 'svc secrets revoke deletes one' },
  });
}
