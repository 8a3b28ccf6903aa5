import { LIMITS, SOURCES_PLUGIN_ID } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import type {
  DeliveryRecord,
  KeyValueStore,
  MarkerClaim,
  NewDelivery,
  SecretKey,
  WebhookInbox,
} from '../../../../../store/ports/index.ts';
import type { ParsedBody } from '../../../../../webhooks/bodies/parsed-body.ts';
import { isGuardedBody } from '../../../../../webhooks/handshakes/hmac-guard.ts';
import { receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import type { SignatureVerdict, VerificationKeys } from '../../../../../webhooks/schemes/index.ts';
import { requireDelivery } from '../admin/deliveries.ts';
import type { WebhookDispatcher } from '../dispatch/webhook-dispatcher.ts';
import { orderKeyOf } from '../receive/acceptance.ts';
import { deliveryIdOf, markerKey } from '../receive/delivery-id.ts';
import { type JsonPayload, parseOnce, withBytes } from '../receive/payload.ts';
import { authenticHeaders } from '../receive/request-head.ts';
import { beginSteps, mark } from '../receive/step-log.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import type { DeliveryUploads } from '../receive/uploads.ts';
import { DeliveryRequest, senderUrl } from '../verify/delivery-request.ts';
import { explainRefusal } from '../verify/explanation.ts';
import { proofPlacesOf } from '../verify/proof-places.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';
import { createWebhookVerifier, type RunValidator } from '../verify/verifier.ts';
import type { RefusedRequests, StoredRequest } from './refused-requests.ts';

export interface RefusedReplaysDeps {
  inbox: WebhookInbox;
  /** A cache that all gateway processes share, for the claims of replays. */
  cache: KeyValueStore;
  requests: RefusedRequests;
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  dispatcher: WebhookDispatcher;
  uploads: Pick<DeliveryUploads, 'store'>;
  runValidator: RunValidator;
  /** Adds the sealed original headers to those of a source's delivery. Destinations forward them. */
  sealHeaders: (record: SecretKey, headers: string, rawHeaders: readonly string[]) => string;
  publicUrl: string | null;
  clock: Clock;
  random: Random;
  logger: Logger;
}

interface Call {
  requestId: string;
  traceId: string;
}

interface Replayed {
  webhookId: string;
  replayOf: string;
}

/** Cache scope of the claims. A claim is needed only until the record shows that the delivery was replayed. */
const CLAIMS = 'refused-replay';
const CLAIM_MS = minutes(1);

/** Replays deliveries that were refused with 401. @spec docs/webhooks.md "Replay" */
export class RefusedReplays {
  readonly #deps: RefusedReplaysDeps;

  constructor(deps: RefusedReplaysDeps) {
    this.#deps = deps;
  }

  /**
   * Verifies the stored request again, with the present secrets, and runs the handler if it is authentic now. With
   * `trust`, the handler runs even if it is not. Throws CONFLICT with the reason if the delivery cannot be replayed.
   */
  async replay(
    namespaceId: string,
    webhookId: string,
    call: Call,
    { trust }: { trust: boolean },
  ): Promise<Replayed> {
    const { cache, inbox, requests } = this.#deps;
    requireRefused(await requireDelivery(inbox, namespaceId, webhookId));
    if (!(await cache.setIfAbsent(CLAIMS, webhookId, call.requestId, CLAIM_MS)))
      throw conflict(`Delivery ${webhookId} is being replayed by another call.`);
    let isReplayed = false;
    try {
      // The record is read within the claim, because a replay might have ended just before.
      const record = requireRefused(await requireDelivery(inbox, namespaceId, webhookId));
      const replayed = await this.#replayRecord(record, call, trust);
      isReplayed = true;
      await requests.delete(webhookId);
      return replayed;
    } finally {
      if (!isReplayed) await cache.delete(CLAIMS, webhookId);
    }
  }

  async #replayRecord(record: DeliveryRecord, call: Call, trust: boolean): Promise<Replayed> {
    const { webhookId } = record;
    const request = await this.#deps.requests.find(webhookId);
    if (!request)
      throw conflict(
        `The request of refused delivery ${webhookId} is not stored, so it cannot be replayed.`,
        'Correct the cause, then let the sender send again. Requests refused with 401 are stored for 24 hours, within limits (docs/webhooks.md, "Replay").',
      );
    const { pluginId, event } = record;
    const target = this.#deps.targets.requireOf(record);
    const keys = await this.#deps.secrets.find(record);
    if (!keys)
      throw conflict(
        `Webhook ${pluginId} ${event} has no secret, so delivery ${webhookId} cannot be replayed.`,
        pluginId === SOURCES_PLUGIN_ID
          ? `Create one with svc sources rotate ${event}.`
          : `Create one with svc webhooks provision ${pluginId} ${event}.`,
      );
    const acceptedId = this.#deps.random.uuid();
    const rules = receiveRulesOf(target.webhook);
    const body = await parseOnce(rules, request.body, { webhookId: acceptedId, incoming: request })();
    const stored: Stored = { target, request, keys, body, acceptedId };
    const verdict = await this.#verify(record, stored, call);
    if (!verdict.valid && !trust) throw this.#notAuthentic(record, verdict, stored);
    return this.#accept(record, stored, call, verdict);
  }

  /** Verifies as at the time of receipt: an old request that was captured and sent again stays outside the tolerance. */
  async #verify(
    { webhookId, namespaceId, instanceId, source }: DeliveryRecord,
    { target, request, keys, body }: Stored,
    { requestId, traceId }: Call,
  ): Promise<SignatureVerdict> {
    const { runValidator, publicUrl, clock, logger } = this.#deps;
    const { body: bytes, receivedAt, ...head } = request;
    const verifier = createWebhookVerifier({
      ...{ runValidator, publicUrl, logger },
      clock: { ...clock, now: () => receivedAt },
    });
    const incoming = { ...head, requestId, traceId, source };
    const fields = () => body.value;
    return verifier.verify(target, bytes, keys, { webhookId, namespaceId, instanceId, incoming, fields });
  }

  async #accept(
    record: DeliveryRecord,
    { target, request, keys, body, acceptedId }: Stored,
    call: Call,
    verdict: SignatureVerdict,
  ): Promise<Replayed> {
    const { inbox, dispatcher, uploads, clock } = this.#deps;
    if (body.fault !== undefined)
      throw conflict(`The body of delivery ${record.webhookId} cannot be read: ${body.fault}.`);
    const rules = receiveRulesOf(target.webhook);
    if (request.method !== 'POST' || (rules.requiresObject && !isGuardedBody(body.value)))
      throw conflict(`The request of delivery ${record.webhookId} is no delivery of the webhook.`);
    const payload = withBytes(rules, body, request.body);
    const id = rules.deliveryId && deliveryIdOf(rules.deliveryId, request, () => body);
    const marker: MarkerClaim | undefined = id
      ? { key: markerKey(record, id), expiresAt: clock.now() + LIMITS.idempotencyWindowMs }
      : undefined;
    const context = { steps: beginSteps() };
    mark(context, 'authentication', verdict.valid ? `ok (${verdict.secret})` : 'trusted');
    mark(context, 'dispatch', 'accepted');
    const shown = authenticHeaders(request, proofPlacesOf(target), keys);
    const headers = this.#deps.sealHeaders(record, shown, request.rawHeaders);
    const delivery = replayOf(record, { call, payload, target, headers, body: request.body });
    const accepted = { ...delivery, webhookId: acceptedId, receivedAt: clock.now() };
    await uploads.store(accepted, payload.files);
    const claim = await inbox.accept(accepted, marker, context.steps.text);
    if (claim === 'pending' || claim === 'done')
      throw conflict(
        `Delivery ${record.webhookId} was not replayed: a delivery with the same id was handled since.`,
      );
    if (claim !== 'spilled') await dispatcher.enqueue(accepted, target, payload);
    return { webhookId: accepted.webhookId, replayOf: record.webhookId };
  }

  #notAuthentic(
    { webhookId, source }: DeliveryRecord,
    refusal: Extract<SignatureVerdict, { valid: false }>,
    { target: { webhook }, request: stored, keys, body }: Stored,
  ): PlatformError {
    const { auth } = webhook;
    const { publicUrl } = this.#deps;
    const { body: bytes, receivedAt: nowMs, ...head } = stored;
    const request = new DeliveryRequest({ ...head, source }, bytes, publicUrl, () => body.value);
    const explanation =
      auth.type === 'custom'
        ? { reason: refusal.fault, hint: "The plugin's validator refused it again; see its log." }
        : explainRefusal({ auth, ...refusal, request, directUrl: senderUrl(head, null), keys, nowMs });
    return new PlatformError(
      'CONFLICT',
      `Delivery ${webhookId} is still not authentic (${explanation.reason}), so it was not replayed.`,
      {
        details: {
          explanation,
          hint: `${explanation.hint} An administrator can run it nevertheless: svc webhooks replay ${webhookId} --trust`,
        },
      },
    );
  }
}

/** A refused request with all that its verification needs. */
interface Stored {
  target: DeclaredWebhook;
  request: StoredRequest;
  keys: VerificationKeys;
  body: ParsedBody;
  /** Id of the delivery that replays the request. */
  acceptedId: string;
}

interface ReplayParts {
  call: Call;
  payload: JsonPayload;
  target: DeclaredWebhook;
  headers: string;
  body: Buffer;
}

function replayOf(
  { webhookId, namespaceId, pluginId, event, instanceId, source }: DeliveryRecord,
  { call, payload, target, headers, body }: ReplayParts,
): Omit<NewDelivery, 'webhookId' | 'receivedAt'> {
  return {
    ...{ namespaceId, pluginId, event, instanceId, source, headers, body },
    requestId: call.requestId,
    traceId: call.traceId,
    bodyBytes: body.byteLength,
    mode: 'async',
    origin: 'replay',
    replayOf: webhookId,
    orderKey: orderKeyOf(target.webhook, payload.value),
  };
}

/** Throws CONFLICT unless the delivery was refused and not replayed yet. */
function requireRefused(record: DeliveryRecord): DeliveryRecord {
  const { webhookId, status, replayedBy } = record;
  if (status !== 'refused')
    throw conflict(`Delivery ${webhookId} is ${status}, not refused.`, 'Replay it without --trust.');
  if (replayedBy !== null)
    throw conflict(`Delivery ${webhookId} was replayed as ${replayedBy}.`, 'Replay that delivery instead.');
  return record;
}

function conflict(message: string, hint?: string): PlatformError {
  return new PlatformError('CONFLICT', message, hint === undefined ? {} : { details: { hint } });
}
