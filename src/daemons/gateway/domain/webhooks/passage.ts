import type { Caller } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import type { MaybePromise } from '../../../../kit/maybe-promise.ts';
import type { NewDelivery, SecretKey } from '../../../../store/ports/index.ts';
import { maskedHeaders } from './request-head.ts';
import { beginSteps, type StepLog } from './steps.ts';

/** A request as the route hands it over; nothing of its body was read yet. */
export interface IncomingDelivery {
  /** Made by whoever hands it over. */
  webhookId: string;
  pluginId: string;
  event: string;
  instanceId: string | undefined;
  /** The request target as sent: a path, with its query. */
  url: string;
  /** node's flat list: names and values as sent. */
  rawHeaders: readonly string[];
  /** `?namespace=` of the URL, where the webhook allows it. */
  namespaceInUrl: string | undefined;
  /** The caller's IP address. */
  source: string;
  /** Default: a sender. */
  origin?: 'sender' | 'sample';
  requestId: string;
  traceId: string;
  /** Reads the raw body; throws PAYLOAD_TOO_LARGE. */
  readBody: (limitBytes: number) => MaybePromise<Buffer>;
}

/** One delivery on its way through the steps. */
export interface Passage extends SecretKey {
  incoming: IncomingDelivery;
  webhookId: string;
  receivedAt: number;
  /** On the monotonic clock. */
  beganAt: number;
  steps: StepLog;
  /** Whether its namespace has a secret for the webhook; known with step 2. */
  isProvisioned: boolean;
  body: Buffer | null;
  /** The sender's id of the delivery, where the webhook declares one and the delivery brings it. */
  deliveryId: string | null;
  /** Known once authenticated. */
  caller: Caller | null;
  /** The headers as the record keeps them, once authenticated: JSON. */
  headers: string | null;
  /** JSON for the record of a refused one: what was answered, and for a 401 why. */
  refusal: string | null;
}

/** Its namespace is empty until step 2 knows it. */
export function beginPassage(incoming: IncomingDelivery, clock: Clock): Passage {
  return {
    incoming,
    webhookId: incoming.webhookId,
    receivedAt: clock.now(),
    beganAt: clock.monotonic(),
    steps: beginSteps(),
    isProvisioned: false,
    namespaceId: '',
    pluginId: incoming.pluginId,
    event: incoming.event,
    instanceId: incoming.instanceId ?? '',
    body: null,
    deliveryId: null,
    caller: null,
    headers: null,
    refusal: null,
  };
}

/** As the store takes it. */
export function deliveryOf(passage: Passage, mode: 'sync' | 'async', orderKey: string | null): NewDelivery {
  const { incoming } = passage;
  return {
    webhookId: passage.webhookId,
    namespaceId: passage.namespaceId,
    pluginId: passage.pluginId,
    event: passage.event,
    instanceId: passage.instanceId,
    receivedAt: passage.receivedAt,
    source: incoming.source,
    requestId: incoming.requestId,
    traceId: incoming.traceId,
    headers: passage.headers ?? maskedHeaders(incoming.rawHeaders),
    body: passage.body,
    bodyBytes: passage.body?.byteLength ?? 0,
    mode,
    origin: incoming.origin ?? 'sender',
    replayOf: null,
    orderKey,
  };
}
