import { LIMITS } from '../../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../../kit/data/bounded-cache.ts';
import type { MaybePromise } from '../../../../../kit/data/maybe-promise.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Seal } from '../../../../../kit/security/keys.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { SecretKey, SecretRecord, WebhookSecretStore } from '../../../../../store/ports/index.ts';
import { sealedColumns } from '../../../../../store/ports/index.ts';
import type { ChangeFeed } from '../../../../membership/change-feed.ts';
import { describeEndpoint, endpointName } from '../receive/endpoint-name.ts';
import { PreviousUse } from './previous-use.ts';
import { SealedKeys, type VerificationKeys } from './verification-key.ts';

/** Maximum number of webhooks whose keys are cached. */
const MAX_CACHED = 10_000;

export interface WebhookSecretsDeps {
  store: WebhookSecretStore;
  seal: Seal;
  clock: Clock;
  logger: Logger;
  /** Change feed, on which other processes announce rotated and revoked secrets. */
  feed: Pick<ChangeFeed, 'follow' | 'spread'>;
}

/** Provisions, rotates and revokes webhook secrets. @spec States: Webhook secret */
export class WebhookSecrets {
  readonly #deps: WebhookSecretsDeps;
  readonly #sealed: SealedKeys;
  readonly #previousUse: PreviousUse;
  /** Cache of `find`. Without the cache, reading and decrypting keys would take a tenth of the time of a delivery. */
  readonly #found = createBoundedCache<{ keys: VerificationKeys; untilMs: number }>(MAX_CACHED);
  /** Number of changes so far. A read that started before the latest change is not cached. */
  #changes = 0;

  constructor(deps: WebhookSecretsDeps) {
    this.#deps = deps;
    this.#sealed = new SealedKeys(deps.seal);
    this.#previousUse = new PreviousUse(deps);
    deps.feed.follow('secrets', (keys) => this.#forget(keys));
  }

  /** Stores a secret as the current secret. The former current secret becomes the previous secret. */
  async provision(
    key: SecretKey,
    secret: string,
    { namespaceInUrl }: { namespaceInUrl: boolean | undefined },
  ): Promise<{ rotated: boolean; namespaceInUrl: boolean }> {
    const { store, seal, clock } = this.#deps;
    const now = clock.now();
    const sealed = seal.seal(secret, sealContext(key));
    const graceEndsAt = now + LIMITS.secretGraceMs;
    return this.#changed(key, store.rotate(key, { sealed, now, graceEndsAt, namespaceInUrl }));
  }

  /** Revokes the secret, so that deliveries are rejected with 401. Throws WEBHOOK_NOT_FOUND if no secret exists. */
  async revoke(key: SecretKey): Promise<void> {
    if (await this.#changed(key, this.#deps.store.revoke(key))) return;
    throw new PlatformError(
      'WEBHOOK_NOT_FOUND',
      `Webhook ${describeEndpoint(key)} has no secret to revoke; list provisioned webhooks with \`svc webhooks list\`.`,
    );
  }

  /**
   * Returns the keys for verifying a delivery, or undefined if the webhook has no secret. The result is synchronous if
   * the keys are cached.
   */
  find(key: SecretKey): MaybePromise<VerificationKeys | undefined> {
    const known = this.#found.get(endpointName(key));
    return known && this.#deps.clock.now() < known.untilMs ? known.keys : this.#read(key);
  }

  list(namespaceId: string): Promise<SecretRecord[]> {
    return this.#deps.store.list(namespaceId);
  }

  /**
   * Records that a sender used the previous secret. The response does not wait for the write, so the write can be lost.
   */
  notePreviousUse(key: SecretKey, keys: VerificationKeys): void {
    this.#previousUse.note(key, keys);
  }

  async #changed<T>(key: SecretKey, change: Promise<T>): Promise<T> {
    try {
      return await change;
    } finally {
      this.#forget([endpointName(key)]);
      await this.#deps.feed.spread();
    }
  }

  #forget(keys: readonly string[] | null): void {
    this.#changes++;
    if (keys === null) this.#found.clear();
    else for (const key of keys) this.#found.delete(key);
  }

  async #read(key: SecretKey): Promise<VerificationKeys | undefined> {
    const { store, clock } = this.#deps;
    const context = sealContext(key);
    const before = this.#changes;
    const record = await store.find(key);
    if (!record) return undefined;
    const inGrace = record.previous !== null && clock.now() < (record.previousExpiresAt ?? 0);
    const keys: VerificationKeys = {
      current: this.#sealed.open(record.current, context),
      previous: inGrace ? this.#sealed.tryOpen(record.previous!, context) : null,
      previousExpiresAt: inGrace ? record.previousExpiresAt : null,
      lapsed: record.lapsed === null ? null : this.#sealed.tryOpen(record.lapsed, context),
      namespaceInUrl: record.namespaceInUrl,
    };
    const untilMs = keys.previousExpiresAt ?? Number.POSITIVE_INFINITY;
    if (before === this.#changes) this.#found.set(endpointName(key), { keys, untilMs });
    return keys;
  }
}

/** Returns the encryption context of a secret. The context prevents decryption of the secret in another row. */
export function sealContext({ namespaceId, pluginId, event, instanceId }: SecretKey): string {
  const key = { namespace_id: namespaceId, plugin_id: pluginId, event, instance_id: instanceId };
  return sealedColumns('webhook_secret').context(key, 'current');
}
