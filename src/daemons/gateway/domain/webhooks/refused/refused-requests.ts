import { createRateLimiter, type RateLimiter } from '../../../../../kit/limits/rate-limiter.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { hours } from '../../../../../kit/time/duration.ts';
import type {
  RefusedRequest,
  RefusedRequestLimits,
  RefusedRequestStore,
  SecretKey,
} from '../../../../../store/ports/index.ts';
import type { DeliveryContext, IncomingDelivery } from '../receive/delivery-context.ts';
import { endpointName } from '../receive/endpoint-name.ts';
import { senderNetwork } from '../receive/sender-network.ts';
import type { RecordSeal } from '../verify/record-seal.ts';

/** Request of a refused delivery, with the headers that authenticate it. Only the gateway may read them. */
export interface StoredRequest extends Pick<IncomingDelivery, 'method' | 'url' | 'rawHeaders' | 'calledAs'> {
  body: Buffer;
  receivedAt: number;
}

export interface RefusedRequestsDeps {
  store: RefusedRequestStore;
  seal: RecordSeal;
  clock: Clock;
  logger: Logger;
  /** Whether requests are stored: `webhooks.keepRefused` of the config. */
  isOn: boolean;
  /** Size limit of all deliveries: `retention.deliveriesMaxBytes` of the config. */
  deliveriesMaxBytes: number;
}

/** Time for which a refused request can be replayed. */
export const REFUSED_REQUEST_MS = hours(24);
const MAX_BODY_BYTES = 256 * 1024;
/**
 * Requests per hour that one process stores. Clients without a secret cause them, so a flood from one network must not
 * displace the requests of others.
 */
const PER_NETWORK = 20;
const PER_WEBHOOK = 100;
const IN_ALL = 2000;
/** Maximum number of counted webhooks and networks. Further ones share one count. */
const MAX_COUNTED = 10_000;
const WEBHOOK_BYTES = 4 * 1024 * 1024;
const TOTAL_BYTES = 64 * 1024 * 1024;
/** Share of the size limit of deliveries that refused requests use at most. */
const SHARE_OF_DELIVERIES = 0.05;
const FLUSH_MS = 50;
/** Bodies in memory that wait to be stored. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/**
 * Stores the requests of deliveries that were refused with 401, encrypted and for a day, so that they can be replayed
 * after the cause is corrected. Only webhooks with a secret have such requests. @spec docs/webhooks.md "Replay"
 */
export class RefusedRequests {
  readonly #deps: RefusedRequestsDeps;
  readonly #limits: RefusedRequestLimits;
  readonly #limiter: RateLimiter;
  #waiting: DeliveryContext[] = [];
  #waitingBytes = 0;
  #isScheduled = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: RefusedRequestsDeps) {
    this.#deps = deps;
    const totalBytes = Math.min(TOTAL_BYTES, Math.floor(deps.deliveriesMaxBytes * SHARE_OF_DELIVERIES));
    this.#limits = { totalBytes, webhookBytes: Math.min(WEBHOOK_BYTES, totalBytes) };
    this.#limiter = createRateLimiter(deps.clock, hours(1), MAX_COUNTED);
  }

  /**
   * Stores the request of a refused delivery if it is within the limits. The request is encrypted after the response,
   * so that the time of the response does not depend on it.
   */
  keep(context: DeliveryContext): void {
    const { body, isProvisioned, incoming } = context;
    if (!this.#deps.isOn || !isProvisioned || body === null || incoming.origin === 'sample') return;
    if (body.byteLength > MAX_BODY_BYTES || this.#waitingBytes + body.byteLength > MAX_WAITING_BYTES) return;
    const webhook = endpointName(context);
    const isAllowed =
      this.#limiter.take(`${webhook} ${senderNetwork(incoming.source)}`, PER_NETWORK).allowed &&
      this.#limiter.take(webhook, PER_WEBHOOK).allowed &&
      this.#limiter.take('in all', IN_ALL).allowed;
    if (!isAllowed) return;
    this.#waiting.push(context);
    this.#waitingBytes += body.byteLength;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#deps.clock.after(FLUSH_MS, () => void this.flush());
  }

  /** Returns the request of a delivery, or undefined if it is not stored, expired or not readable any more. */
  async find(webhookId: string): Promise<StoredRequest | undefined> {
    await this.flush();
    const { store, seal, clock } = this.#deps;
    const found = await store.find(webhookId);
    if (!found || found.receivedAt < clock.now() - REFUSED_REQUEST_MS) return undefined;
    const text = await opened(seal, found);
    if (text === undefined) return undefined;
    const { body, ...head } = JSON.parse(text) as Omit<StoredRequest, 'body'> & { body: string };
    return { ...head, body: Buffer.from(body, 'base64'), receivedAt: found.receivedAt };
  }

  delete(webhookId: string): Promise<void> {
    return this.#deps.store.delete(webhookId);
  }

  /** Resolves when all requests that were kept before this call are stored. */
  flush(): Promise<void> {
    this.#isScheduled = false;
    if (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      this.#writing = this.#writing.then(() => this.#write(batch));
    }
    return this.#writing;
  }

  async #write(batch: readonly DeliveryContext[]): Promise<void> {
    const { store, seal, logger } = this.#deps;
    try {
      await store.add(
        batch.map((context) => sealed(seal, context)),
        this.#limits,
      );
    } catch (error) {
      logger.warn(`${batch.length} requests of refused deliveries could not be stored for a replay`, {
        error,
      });
    }
  }
}

function sealed(seal: RecordSeal, context: DeliveryContext): RefusedRequest {
  const { webhookId, receivedAt, namespaceId, pluginId, event, instanceId, incoming, body } = context;
  const key = { webhookId, receivedAt, namespaceId, pluginId, event, instanceId };
  const { method, url, rawHeaders, calledAs } = incoming;
  const plain = JSON.stringify({ method, url, rawHeaders, calledAs, body: body!.toString('base64') });
  return { ...key, sealed: seal.seal(plain, sealContext(key)) };
}

/** Returns undefined for a request that was encrypted with a key that no longer exists. */
async function opened(seal: RecordSeal, request: RefusedRequest): Promise<string | undefined> {
  try {
    return await seal.open(request.sealed, sealContext(request));
  } catch {
    return undefined;
  }
}

/** The context keeps a stored request from being moved to another delivery, webhook or time. */
function sealContext(key: SecretKey & Pick<RefusedRequest, 'webhookId' | 'receivedAt'>): string {
  const { webhookId, namespaceId, pluginId, event, instanceId, receivedAt } = key;
  return JSON.stringify(['refused', webhookId, namespaceId, pluginId, event, instanceId, receivedAt]);
}
