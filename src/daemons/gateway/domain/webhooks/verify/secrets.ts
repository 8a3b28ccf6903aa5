import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { LIMITS } from '../../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../../kit/data/bounded-cache.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Seal } from '../../../../../kit/security/keys.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { SecretKey, SecretRecord, WebhookSecretStore } from '../../../../../store/ports/index.ts';
import { describe, endpointName } from '../receive/endpoint-name.ts';
import { standardKey } from './new-secret.ts';
import { createPreviousUse } from './previous-use.ts';

/** Maximum cached decrypted secrets; then the cache is cleared. */
const MAX_CACHED = 10_000;

/** A secret prepared for comparison: hashing and key setup are done once, not per delivery. */
export interface VerificationKey {
  text: string;
  hmacKey: KeyObject;
  digest: Buffer;
  /** The key as Standard Webhooks libraries read it: decoded from `whsec_…`. */
  standardKey(): KeyObject;
}

export interface VerificationKeys {
  current: VerificationKey;
  /** The previous secret during its grace period. */
  previous: VerificationKey | null;
  previousExpiresAt: number | null;
  /** The previous secret after its grace period: not accepted, only used to explain refusals. */
  lapsed: VerificationKey | null;
  namespaceInUrl: boolean;
}

export interface WebhookSecrets {
  /** Stores the secret as current; an existing one becomes the previous. */
  provision(
    key: SecretKey,
    secret: string,
    options: { namespaceInUrl: boolean | undefined },
  ): Promise<{ rotated: boolean; namespaceInUrl: boolean }>;
  /** Deliveries are rejected with 401 from then on. Throws WEBHOOK_NOT_FOUND when there was no secret. */
  revoke(key: SecretKey): Promise<void>;
  /** Keys for verifying a delivery; undefined when unprovisioned or revoked. Synchronous when cached. */
  find(key: SecretKey): VerificationKeys | undefined | Promise<VerificationKeys | undefined>;
  list(namespaceId: string): Promise<SecretRecord[]>;
  /** Records that a sender used the previous secret; losable, off the response path. */
  notePreviousUse(key: SecretKey, keys: VerificationKeys): void;
}

export interface WebhookSecretsDeps {
  store: WebhookSecretStore;
  seal: Seal;
  clock: Clock;
  logger: Logger;
  /** Whether other processes rotate and revoke too: each delivery reads the store then. */
  shared: boolean;
}

/** Lifecycle of webhook secrets. @spec States: Webhook secret */
export function createWebhookSecrets({
  store,
  seal,
  clock,
  logger,
  shared,
}: WebhookSecretsDeps): WebhookSecrets {
  const unseal = cacheUnsealed(seal);
  /** Ignores a secret whose master key is lost: the current secret must work without it. */
  const unsealPrevious = (sealed: string, context: string): VerificationKey | null => {
    try {
      return unseal(sealed, context);
    } catch {
      return null;
    }
  };
  /** Cache of `find`: reading and decrypting would take a tenth of a delivery's cost. */
  const found = createBoundedCache<{ keys: VerificationKeys; untilMs: number }>(MAX_CACHED);
  /** Counts changes, so that a read that started before a change is not cached after it. */
  let changes = 0;

  async function changed<T>(key: SecretKey, change: Promise<T>): Promise<T> {
    try {
      return await change;
    } finally {
      changes++;
      found.delete(endpointName(key));
    }
  }

  async function read(key: SecretKey): Promise<VerificationKeys | undefined> {
    const context = sealContext(key);
    const before = changes;
    const record = await store.find(key);
    if (!record) return undefined;
    const inGrace = record.previous !== null && clock.now() < (record.previousExpiresAt ?? 0);
    const keys: VerificationKeys = {
      current: unseal(record.current, context),
      previous: inGrace ? unsealPrevious(record.previous!, context) : null,
      previousExpiresAt: inGrace ? record.previousExpiresAt : null,
      lapsed: record.lapsed === null ? null : unsealPrevious(record.lapsed, context),
      namespaceInUrl: record.namespaceInUrl,
    };
    const untilMs = keys.previousExpiresAt ?? Number.POSITIVE_INFINITY;
    if (!shared && before === changes) found.set(endpointName(key), { keys, untilMs });
    return keys;
  }

  return {
    async provision(key, secret, { namespaceInUrl }) {
      const now = clock.now();
      const sealed = seal.seal(secret, sealContext(key));
      const graceEndsAt = now + LIMITS.secretGraceMs;
      return changed(key, store.rotate(key, { sealed, now, graceEndsAt, namespaceInUrl }));
    },
    async revoke(key) {
      if (await changed(key, store.revoke(key))) return;
      throw new PlatformError(
        'WEBHOOK_NOT_FOUND',
        `Webhook ${describe(key)} has no secret to revoke; list provisioned webhooks with \`svc webhooks list\`.`,
      );
    },
    find(key) {
      const known = found.get(endpointName(key));
      return known && clock.now() < known.untilMs ? known.keys : read(key);
    },
    list: (namespaceId) => store.list(namespaceId),
    notePreviousUse: createPreviousUse({ store, clock, logger }),
  };
}

/** Binds an encrypted secret to its row. */
function sealContext({ namespaceId, pluginId, event, instanceId }: SecretKey): string {
  return JSON.stringify(['webhook', namespaceId, pluginId, event, instanceId]);
}

export function verificationKey(text: string): VerificationKey {
  let decoded: KeyObject | undefined;
  return {
    text,
    hmacKey: createSecretKey(Buffer.from(text)),
    digest: createHash('sha256').update(text).digest(),
    standardKey: () => (decoded ??= createSecretKey(standardKey(text) ?? Buffer.from(text))),
  };
}

/** Caches by encrypted text: a rotation in any process changes the stored text, so nothing stale is used. */
function cacheUnsealed(seal: Seal): (sealed: string, context: string) => VerificationKey {
  const known = new Map<string, VerificationKey>();
  return (sealed, context) => {
    let key = known.get(sealed);
    if (!key) {
      key = verificationKey(seal.open(sealed, context));
      if (known.size >= MAX_CACHED) known.clear();
      known.set(sealed, key);
    }
    return key;
  };
}
