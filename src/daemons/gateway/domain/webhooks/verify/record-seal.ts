import { createSeal, masterKeyId, type Seal, sealingKeyId } from '../../../../../kit/security/keys.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { SecretKey, WebhookSecretStore } from '../../../../../store/ports/index.ts';
import { isRecordKeyRow, RECORD_KEY } from '../../../../../store/ports/index.ts';
import { sealContext } from './secrets.ts';

export interface RecordSealDeps {
  store: Pick<WebhookSecretStore, 'list' | 'rotate'>;
  /** Encrypts with the master key. */
  seal: Seal;
  masterKey: string;
  /** Former master keys, with which older records may be encrypted. */
  previousMasterKeys: readonly string[];
  random: Random;
  clock: Clock;
  logger: Logger;
}

interface RecordKey {
  /** 32 bytes as base64url. */
  key: string;
  /** Id of the master key at the time the key was made. */
  madeUnder: string;
}

const KEY_BYTES = 32;

/**
 * Encrypts parts of stored deliveries with keys that are stored beside the webhook secrets, encrypted with the master
 * key. So `svc keys rotate` encrypts only these keys again, and stored deliveries stay readable. After a rotation, new
 * deliveries get a new key. @spec docs/operations.md "Change secrets"
 */
export class RecordSeal {
  readonly #deps: RecordSealDeps;
  #seal: Seal;
  #keys: ReadonlySet<string> = new Set();

  private constructor(deps: RecordSealDeps) {
    this.#deps = deps;
    // Without a record key, parts are encrypted with the master key.
    this.#seal = deps.seal;
  }

  static async create(deps: RecordSealDeps): Promise<RecordSeal> {
    const made = new RecordSeal(deps);
    try {
      if (!(await made.#load())) {
        await made.#addKey();
        await made.#load();
      }
    } catch (error) {
      const message =
        'The key for stored headers could not be stored. Until the next start, the master key encrypts them';
      deps.logger.warn(message, { error });
    }
    return made;
  }

  seal(plain: string, context: string): string {
    return this.#seal.seal(plain, context);
  }

  /** Decrypts a part of a record. Rejects if no known key encrypted it. */
  async open(sealed: string, context: string): Promise<string> {
    // Another gateway may have added a key.
    if (!this.#keys.has(sealingKeyId(sealed) ?? '')) await this.#load();
    return this.#seal.open(sealed, context);
  }

  /** Reads the keys. Returns whether one of them was made under the present master key. */
  async #load(): Promise<boolean> {
    const { store, masterKey, previousMasterKeys } = this.#deps;
    const found: RecordKey[] = [];
    for (const row of await store.list(RECORD_KEY.namespace_id)) {
      const key = isRecordKeyRow(row.namespaceId, row.event) ? this.#keyOf(row, row.current) : null;
      if (key) found.push(key);
    }
    const current = found.find(({ madeUnder }) => madeUnder === masterKeyId(masterKey));
    const others = [...previousMasterKeys, masterKey, ...found.map(({ key }) => key)];
    this.#keys = new Set(others.map(masterKeyId));
    this.#seal = createSeal(current?.key ?? masterKey, others);
    return current !== undefined;
  }

  #keyOf(row: SecretKey, sealed: string): RecordKey | null {
    try {
      return JSON.parse(this.#deps.seal.open(sealed, sealContext(row))) as RecordKey | null;
    } catch (error) {
      this.#deps.logger.warn(
        'A key for stored headers cannot be decrypted, so older deliveries lose their headers',
        { error },
      );
      return null;
    }
  }

  async #addKey(): Promise<void> {
    const { store, seal, masterKey, random, clock } = this.#deps;
    const row = {
      namespaceId: RECORD_KEY.namespace_id,
      pluginId: '',
      event: RECORD_KEY.event,
      instanceId: random.uuid(),
    };
    const key: RecordKey = { key: random.secret(KEY_BYTES), madeUnder: masterKeyId(masterKey) };
    const now = clock.now();
    const sealed = seal.seal(JSON.stringify(key), sealContext(row));
    await store.rotate(row, { sealed, now, graceEndsAt: now, namespaceInUrl: false });
  }
}
