import { LIMITS } from '../../../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { hours, seconds } from '../../../../../kit/time/duration.ts';
import type { ObjectAccess } from '../../../../../plugins/index.ts';
import type { KeyValueStore, NewDelivery, WebhookInbox } from '../../../../../store/ports/index.ts';
import type { UploadedFile } from '../../../../../webhooks/bodies/parsed-body.ts';
import { uploadKey } from './upload-key.ts';

export interface DeliveryUploadsDeps {
  objects: Pick<ObjectAccess, 'write' | 'delete'>;
  /** A cache that all gateway processes share. */
  cache: KeyValueStore;
  inbox: Pick<WebhookInbox, 'find'>;
  clock: Clock;
  logger: Logger;
}

/** Cache scope of the deliveries with stored files, by webhook id. */
const SCOPE = 'webhook-uploads';
/** Time that a delivery has to be stored after its files. Entries without a delivery are removed only afterwards. */
const SETTLED_AFTER_MS = hours(1);
const PAGE = 100;
const CALL_TIMEOUT_MS = seconds(10);

type Owner = Pick<NewDelivery, 'webhookId' | 'namespaceId' | 'pluginId' | 'requestId' | 'traceId'>;

interface Entry extends Omit<Owner, 'webhookId' | 'requestId' | 'traceId'> {
  files: number;
  storedAt: number;
}

/**
 * Files of `multipart/form-data` deliveries, as objects of their plugin (`ctx.storage`). The files are stored before
 * the delivery and deleted after it. @spec docs/webhooks.md "Bodies"
 */
export class DeliveryUploads {
  readonly #deps: DeliveryUploadsDeps;

  constructor(deps: DeliveryUploadsDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the files of an authentic delivery. Throws PAYLOAD_TOO_LARGE for a file that is too large, and
   * SERVICE_UNAVAILABLE if the files cannot be stored.
   */
  async store(owner: Owner, files: readonly UploadedFile[] | undefined): Promise<void> {
    if (!files || files.length === 0) return;
    const maxBytes = LIMITS.storageObjectBytes;
    const large = files.find(({ data }) => data.length > maxBytes);
    if (large)
      throw new PlatformError(
        'PAYLOAD_TOO_LARGE',
        `The file of the field ${JSON.stringify(large.field)} has more than ${maxBytes} bytes.`,
        { details: { maxBytes } },
      );
    const { webhookId, namespaceId, pluginId } = owner;
    const entry: Entry = { namespaceId, pluginId, files: files.length, storedAt: this.#deps.clock.now() };
    try {
      // The entry is written first, so that no crash leaves files that nothing refers to.
      await this.#deps.cache.set(SCOPE, webhookId, { ...entry });
      await Promise.all(
        files.map(({ data }, index) =>
          this.#deps.objects.write(scopeOf(owner), uploadKey(webhookId, index), data.toString('base64')),
        ),
      );
    } catch (error) {
      if (error instanceof PlatformError && error.status < 500) throw error;
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        'The files of the delivery could not be stored; send it again.',
        { cause: error },
      );
    }
  }

  /** Deletes the files of deliveries that no longer exist. Never rejects. */
  async sweep(): Promise<void> {
    const { cache, logger } = this.#deps;
    try {
      for (let after: string | undefined; ; ) {
        const page = await cache.scan(SCOPE, {
          prefix: '',
          limit: PAGE,
          ...(after === undefined ? {} : { after }),
        });
        for (const { key, value } of page) await this.#sweepOne(key, value as unknown as Entry);
        after = page.at(-1)?.key;
        if (page.length < PAGE) return;
      }
    } catch (error) {
      logger.warn(
        `Files of pruned deliveries could not be deleted; retrying in an hour: ${messageOf(error)}`,
        {
          error,
        },
      );
    }
  }

  async #sweepOne(webhookId: string, entry: Entry): Promise<void> {
    const { inbox, clock } = this.#deps;
    if (clock.now() - entry.storedAt < SETTLED_AFTER_MS || (await inbox.find(webhookId))) return;
    const { namespaceId, pluginId } = entry;
    await this.discard({ webhookId, namespaceId, pluginId, requestId: webhookId, traceId: '' }, entry.files);
  }

  /** Deletes the files of one delivery. */
  async discard(owner: Owner, files: number): Promise<void> {
    for (let index = 0; index < files; index++)
      await this.#deps.objects.delete(scopeOf(owner), uploadKey(owner.webhookId, index));
    await this.#deps.cache.delete(SCOPE, owner.webhookId);
  }
}

function scopeOf({ namespaceId, pluginId, requestId, traceId }: Owner) {
  const signal = AbortSignal.timeout(CALL_TIMEOUT_MS);
  return { tenantId: namespaceId, user: null, namespace: `plugin:${pluginId}`, requestId, traceId, signal };
}
