import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { LIMITS } from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/bounded-cache.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { Seal } from '../../../../kit/keys.ts';
import type { Logger } from '../../../../kit/logger.ts';
import type { SecretKey, SecretRecord, WebhookSecretStore } from '../../../../store/ports/index.ts';
import { endpointName } from './endpoint-name.ts';
import { standardKey } from './new-secret.ts';
import { createPreviousUse } from './previous-use.ts';

/** Unsealed secrets remembered; beyond it the memory starts anew. */
const REMEMBERED = 10_000;

/** A secret ready for comparison: hashing and key set-up are paid once, not per delivery. */
export interface VerificationKey {
  text: string;
  hmacKey: KeyObject;
  digest: Buffer;
  /** The key as standard-webhooks libraries read it: decoded from `whsec_…`. */
  standardKey(): KeyObject;
}

export interface VerificationKeys {
  current: VerificationKey;
  /** The former secret while its grace lasts. */
  previous: VerificationKey | null;
  previousExpiresAt: number | null;
  /** The former secret after its grace: valid for nothing, it explains refusals to the operator. */
  lapsed: VerificationKey | null;
  namespaceInUrl: boolean;
}

export interface WebhookSecrets {
  /** Stores the secret as current; one that was there becomes the previous. */
  provision(
    key: SecretKey,
    secret: string,
    options: { namespaceInUrl: boolean | undefined },
  ): Promise<{ rotated: boolean; namespaceInUrl: boolean }>;
  /** Deliveries answer 401 from now on. Throws WEBHOOK_NOT_FOUND when there was no secret. */
  revoke(key: SecretKey): Promise<void>;
  /** What a delivery is verified with; undefined when unprovisioned or revoked. At once when it was asked for before. */
  find(key: SecretKey): VerificationKeys | undefined | Promise<VerificationKeys | undefined>;
  list(namespaceId: string): Promise<SecretRecord[]>;
  /** Notes that the previous secret still serves a sender; losable, off the delivery's path. */
  notePreviousUse(key: SecretKey, keys: VerificationKeys): void;
}

export interface WebhookSecretsDeps {
  store: WebhookSecretStore;
  seal: Seal;
  clock: Clock;
  logger: Logger;
  /** Whether other processes rotate and revoke too: then every delivery asks the store. */
  shared: boolean;
}

/** The life of a webhook secret. @spec States: Webhook secret */
export function createWebhookSecrets({
  store,
  seal,
  clock,
  logger,
  shared,
}: WebhookSecretsDeps): WebhookSecrets {
  const unseal = rememberUnsealed(seal);
  /** One whose master key is lost is gone: the secret that was provisioned since is to work without it. */
  const unsealFormer = (sealed: string, context: string): VerificationKey | null => {
    try {
      return unseal(sealed, context);
    } catch {
      return null;
    }
  };
  /** What `find` answered, until it changes: reading and unsealing for each delivery would be a tenth of its cost. */
  const found = createBoundedCache<{ keys: VerificationKeys; untilMs: number }>(REMEMBERED);
  /** Counts changes, so that what was read before one is not remembered after it. */
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
      previous: inGrace ? unsealFormer(record.previous!, context) : null,
      previousExpiresAt: inGrace ? record.previousExpiresAt : null,
      lapsed: record.lapsed === null ? null : unsealFormer(record.lapsed, context),
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
        `Webhook ${describe(key)} has no secret to revoke; \`svc webhooks list\` shows which have.`,
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

/** Ties a sealed secret to its row. */
function sealContext({ namespaceId, pluginId, event, instanceId }: SecretKey): string {
  return JSON.stringify(['webhook', namespaceId, pluginId, event, instanceId]);
}

export function describe({ pluginId, event, instanceId }: SecretKey): string {
  return `${pluginId} ${event}${instanceId === '' ? '' : ` (instance ${JSON.stringify(instanceId)})`}`;
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

/** By sealed text: a rotation or a revocation by any process changes what the store answers, so nothing stale is ever used. */
function rememberUnsealed(seal: Seal): (sealed: string, context: string) => VerificationKey {
  const known = new Map<string, VerificationKey>();
  return (sealed, context) => {
    let key = known.get(sealed);
    if (!key) {
      key = verificationKey(seal.open(sealed, context));
      if (known.size >= REMEMBERED) known.clear();
      known.set(sealed, key);
    }
    return key;
  };
}
