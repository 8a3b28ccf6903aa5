import type { AdaptersConfig, StoredObject } from '../../../contracts/index.ts';
import { adapterMissing } from '../../../kit/errors/adapter-missing.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { type ObjectScope, type ObjectStore, requireObjectKey } from '../../../store/ports/index.ts';

export interface ObjectPage {
  items: StoredObject[];
  nextCursor: string | null;
}

/**
 * Objects of plugins and tenants. All methods throw ADAPTER_NOT_CONFIGURED without a storage adapter, and
 * VALIDATION_ERROR for an invalid key.
 */
export interface StoredObjects {
  /** Returns the content of an object. Throws NOT_FOUND if the object does not exist. */
  read(scope: ObjectScope, key: string): Promise<{ bytes: number; modifiedAt: number; data: string }>;
  /** Writes an object. `data` is base64. Throws PAYLOAD_TOO_LARGE and QUOTA_EXCEEDED. */
  write(scope: ObjectScope, key: string, data: string): Promise<{ bytes: number }>;
  delete(scope: ObjectScope, key: string): Promise<boolean>;
  /** Returns the metadata of an object. Throws NOT_FOUND if the object does not exist. */
  stat(scope: ObjectScope, key: string): Promise<StoredObject>;
  list(
    scope: ObjectScope,
    options: { prefix: string; cursor?: string | undefined; limit: number },
  ): Promise<ObjectPage>;
}

/** Creates the object service. `open` is called on first use, and again after a failure. */
export function createStoredObjects(deps: {
  config: AdaptersConfig['storage'];
  open: (config: NonNullable<AdaptersConfig['storage']>) => Promise<ObjectStore>;
}): StoredObjects & { close(): Promise<void> } {
  let opened: Promise<ObjectStore> | undefined;

  function store(): Promise<ObjectStore> {
    const { config } = deps;
    if (config === null) throw adapterMissing('storage');
    opened ??= deps.open(config).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  }
  async function storeFor(key: string): Promise<ObjectStore> {
    requireObjectKey(key);
    return store();
  }

  return {
    async read(scope, key) {
      const found = await (await storeFor(key)).read(scope, key);
      if (!found) throw noObject(key);
      const { bytes, modifiedAt, data } = found;
      return { bytes, modifiedAt, data: Buffer.from(data).toString('base64') };
    },
    async write(scope, key, text) {
      const objects = await storeFor(key);
      const data = Buffer.from(text, 'base64');
      requireSize(key, data.byteLength, deps.config!.maxObjectBytes);
      await objects.write(scope, key, data);
      return { bytes: data.byteLength };
    },
    delete: async (scope, key) => (await storeFor(key)).delete(scope, key),
    async stat(scope, key) {
      const found = await (await storeFor(key)).stat(scope, key);
      if (!found) throw noObject(key);
      return found;
    },
    async list(scope, { prefix, cursor, limit }) {
      // One extra object is read to detect a next page.
      const found = await (await store()).list(scope, { prefix, after: cursor, limit: limit + 1 });
      const items = found.slice(0, limit);
      return { items, nextCursor: found.length > limit ? items.at(-1)!.key : null };
    },
    async close() {
      await (await opened?.catch(() => undefined))?.close();
    },
  };
}

function noObject(key: string): PlatformError {
  return new PlatformError('NOT_FOUND', `There is no object ${JSON.stringify(key)}.`);
}

function requireSize(key: string, bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  throw new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The object ${JSON.stringify(key)} has ${bytes} bytes; the limit is ${maxBytes} (adapters.storage.maxObjectBytes). Split it over several keys.`,
    { details: { bytes, maxBytes } },
  );
}
