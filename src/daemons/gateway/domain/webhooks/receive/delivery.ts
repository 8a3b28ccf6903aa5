import { codeOf, errorBody, PlatformError, toRemoteError } from '../../../../../kit/errors/errors.ts';
import type { CreateLimiter } from '../../../../../kit/limits/rate-limiter.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';
import { hasHandshake } from '../../../../../webhooks/handshakes/match.ts';
import { type ReceiveRules, receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import type { Fence } from '../../../../membership/membership.ts';
import type { WebhookPauses } from '../admin/pauses.ts';
import type { DeliveryEnds } from '../dispatch/delivery-ends.ts';
import type { CallHandler } from '../dispatch/handler-call.ts';
import type { NeededServices } from '../dispatch/needed-services.ts';
import type { WebhookDispatcher } from '../dispatch/webhook-dispatcher.ts';
import type { RefusedRequests } from '../refused/refused-requests.ts';
import { Authentication } from '../verify/authentication.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';
import type { WebhookVerifier } from '../verify/verifier.ts';
import { Acceptance } from './acceptance.ts';
import { Admission } from './admission.ts';
import { requireContentType } from './content-type.ts';
import { type Answered, answerOf, type DeliveryAnswer, duplicateOf, noop } from './delivery-answer.ts';
import {
  type DeliveryContext,
  deliveryOf,
  type IncomingDelivery,
  newDeliveryContext,
} from './delivery-context.ts';
import { deliveryIdOf, markerKey } from './delivery-id.ts';
import { EarlyAnswers } from './early-answers.ts';
import type { ExpectedSecrets } from './expected-secrets.ts';
import { type ParsedBody, parseOnce, withBytes } from './payload.ts';
import { readWholeBody } from './read-whole-body.ts';
import type { RefusalSamples } from './refusal-samples.ts';
import { requireParsed } from './require-parsed.ts';
import { mark } from './step-log.ts';
import type { SubscriptionConfirmations } from './subscription-confirmations.ts';
import type { DeclaredWebhook, WebhookTargets } from './targets.ts';
import type { DeliveryUploads } from './uploads.ts';

export type { DeliveryAnswer } from './delivery-answer.ts';
export type { IncomingDelivery } from './delivery-context.ts';

export interface WebhookDeliveryDeps {
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  verifier: WebhookVerifier;
  /** `gateway.publicUrl`, which senders call. */
  publicUrl: string | null;
  dispatcher: WebhookDispatcher;
  call: CallHandler;
  /** Availability of the services that plugins call. If undefined, all services count as available. */
  services?: Pick<NeededServices, 'isUnavailable' | 'confirm'>;
  pauses: Pick<WebhookPauses, 'isPaused'>;
  inbox: WebhookInbox;
  ends: Pick<DeliveryEnds, 'storeLater'>;
  /** Fence token with which this gateway owns its running sync deliveries. */
  fence: Fence;
  createLimiter: CreateLimiter;
  clock: Clock;
  logger: Logger;
  /** Counts a finished delivery. */
  observe: (pluginId: string, event: string, status: string) => void;
  /** Limits how many requests that run no handler are recorded. */
  samples: RefusalSamples;
  expected: Pick<ExpectedSecrets, 'take'>;
  confirmations: Pick<SubscriptionConfirmations, 'confirm'>;
  uploads: Pick<DeliveryUploads, 'store' | 'discard'>;
  /** Stores the requests of deliveries with a wrong signature for a replay. */
  refusedRequests: Pick<RefusedRequests, 'keep'>;
}

const PAUSED_RETRY_SECONDS = '60';
/**
 * Processes a delivery in the step order of the specification. @spec Webhook delivery;
 * docs/webhooks.md "What the sender does"
 */
export class WebhookDelivery {
  readonly #deps: WebhookDeliveryDeps;
  readonly #admission: Admission;
  readonly #authentication: Authentication;
  readonly #acceptance: Acceptance;
  readonly #early: EarlyAnswers;

  constructor(deps: WebhookDeliveryDeps) {
    this.#deps = deps;
    this.#admission = new Admission(deps);
    this.#authentication = new Authentication(deps);
    this.#acceptance = new Acceptance(deps);
    this.#early = new EarlyAnswers({ ...deps, authentication: this.#authentication });
  }

  /** Returns whether a webhook declares a handshake with this method. */
  takesHandshake(pluginId: string, event: string, method: string): boolean {
    const target = this.#deps.targets.find(pluginId, event);
    return target !== undefined && hasHandshake(receiveRulesOf(target.webhook).handshakes, method);
  }

  /** Waits for handlers whose sender was answered before their end. */
  close(): Promise<void> {
    return this.#acceptance.close();
  }

  /** Resolves with the response. Never rejects. */
  async receive(incoming: IncomingDelivery): Promise<DeliveryAnswer> {
    const context = newDeliveryContext(incoming, this.#deps.clock);
    this.#deps.dispatcher.receiving(1);
    try {
      const { status, body, content, headers, record, answered, afterRecord } = await this.#process(context);
      if (record !== 'handled') this.#note(context, record, status);
      afterRecord?.();
      return { ...answerOf(context, status, body, headers), content, answered: answered ?? noop };
    } catch (thrown) {
      const error = toRemoteError(thrown);
      if (!(thrown instanceof PlatformError))
        this.#deps.logger.error(
          `A delivery to ${incoming.pluginId} ${incoming.event} failed: ${codeOf(thrown) ?? ''}`,
          {
            requestId: incoming.requestId,
            error: thrown,
          },
        );
      context.refusal ??= JSON.stringify(errorBody(error));
      this.#note(context, 'refused', error.status);
      return answerOf(context, error.status, errorBody(error), error.headers);
    } finally {
      this.#deps.dispatcher.receiving(-1);
    }
  }

  async #process(context: DeliveryContext): Promise<Answered> {
    // The following code uses `await` only for promises, because `await` also delays the request if the value is not a
    // promise.
    const admission = this.#admission.admit(context);
    const admitted = admission instanceof Promise ? await admission : admission;
    const { target } = admitted;
    const { webhook } = target;
    const rules = receiveRulesOf(webhook);
    const { method } = context.incoming;
    if (method === 'POST' && rules.handshakes.length === 0) requireContentType(context, rules);

    const reading = readWholeBody(context, webhook.maxBodyBytes);
    const body = reading instanceof Promise ? await reading : reading;
    const parse = parseOnce(rules, body, context);
    const parsing = mayBeMultipart(rules) ? parse() : undefined;
    if (parsing instanceof Promise) await parsing;
    // Multipart bodies are parsed by now, and other formats synchronously.
    const payload = parse as () => ParsedBody;
    context.fields = () => payload().value;

    const early = this.#early.answer(context, admitted, rules, payload);
    const answered = early instanceof Promise ? await early : early;
    if (answered) return answered;
    const marker = this.#markerOf(context, rules, payload);
    if (rules.deliveryId !== undefined) {
      const found = marker === undefined ? undefined : this.#deps.inbox.seen(marker, this.#deps.clock.now());
      const isSeen = (found instanceof Promise ? await found : found) === 'done';
      mark(context, 'idempotency', isSeen ? 'seen' : marker ? 'new' : 'no id');
      if (isSeen) {
        const allowed = this.#authentication.allowUnauthenticated(context, admitted, { tries: true });
        if (allowed instanceof Promise) await allowed;
        return duplicateOf(rules);
      }
    }
    const authenticated = this.#authentication.authenticate(context, admitted);
    if (authenticated instanceof Promise) await authenticated;
    const permitted = this.#admission.takePermit(context, webhook);
    if (permitted instanceof Promise) await permitted;

    const parsed = requireParsed(context, payload(), rules);
    if (!webhook.async) {
      this.#requireRunning(context);
      const required = this.#requireServices(context, target);
      if (required) await required;
    }
    if (parsed.files) await this.#deps.uploads.store(ownerOf(context), parsed.files);
    const delivered = withBytes(rules, parsed, body);
    const accepted = await (webhook.async
      ? this.#acceptance.accept(context, target, delivered, marker)
      : this.#acceptance.handle(context, target, delivered, marker));
    if (accepted !== 'duplicate') return { ...accepted, record: 'handled' };
    if (parsed.files) await this.#deps.uploads.discard(ownerOf(context), parsed.files.length);
    this.#admission.givePermitBack(context);
    return duplicateOf(rules);
  }

  /** Returns the key of the dedupe marker, and notes the sender's delivery id. */
  #markerOf(context: DeliveryContext, { deliveryId }: ReceiveRules, payload: () => ParsedBody) {
    if (deliveryId === undefined) return undefined;
    const id = deliveryIdOf(deliveryId, context.incoming, payload);
    context.deliveryId = id ?? null;
    return id === undefined ? undefined : markerKey(context, id);
  }

  /** Throws if the webhook is paused. Called only for sync deliveries, because their sender waits for the handler. */
  #requireRunning(context: DeliveryContext): void {
    if (!this.#deps.pauses.isPaused(context)) return;
    mark(context, 'dispatch', 'paused');
    throw new PlatformError('SERVICE_UNAVAILABLE', 'This webhook is paused; send the delivery again later.', {
      headers: { 'retry-after': PAUSED_RETRY_SECONDS },
    });
  }

  /**
   * Throws if a needed service is unavailable. Must be called before the dedupe marker is claimed, so that a retry by
   * the sender runs the handler.
   */
  #requireServices(context: DeliveryContext, target: DeclaredWebhook): Promise<void> | undefined {
    const unsure = this.#deps.services?.confirm(target);
    if (unsure) return unsure.then(() => this.#refuseHeld(context, target));
    this.#refuseHeld(context, target);
    return undefined;
  }

  #refuseHeld(context: DeliveryContext, target: DeclaredWebhook): void {
    if (!this.#deps.services?.isUnavailable(target)) return;
    mark(context, 'dispatch', 'held');
    throw new PlatformError(
      'SERVICE_UNAVAILABLE',
      'A platform service that this webhook needs is unavailable; send the delivery again later.',
    );
  }

  /** Records a request that ran no handler. The record has no body. */
  #note(context: DeliveryContext, status: 'refused' | 'challenge' | 'duplicate', httpStatus: number): void {
    const { pluginId, event } = context;
    // Metric labels come only from manifests, because clients could otherwise create any number of labels.
    const isSource = context.incoming.toSource !== undefined && context.namespaceId !== '';
    if (isSource || this.#deps.targets.isDeclared(pluginId, event))
      this.#deps.observe(pluginId, event, status);
    else this.#deps.observe('(unknown)', '(unknown)', status);
    // No operator could see a record without a namespace.
    if (context.namespaceId === '' || !this.#deps.samples.admits(context, status)) return;
    this.#deps.inbox.note(
      { ...deliveryOf(context, 'sync', null), body: null },
      {
        status,
        httpStatus,
        steps: context.steps.text,
        outcome: context.refusal,
        durationMs: this.#deps.clock.monotonic() - context.beganAt,
      },
    );
    if (status === 'refused' && httpStatus === 401) this.#deps.refusedRequests.keep(context);
  }
}

function mayBeMultipart({ body: { format } }: ReceiveRules): boolean {
  return format === 'multipart' || format === 'form';
}

function ownerOf({ webhookId, namespaceId, pluginId, incoming }: DeliveryContext) {
  const { requestId, traceId } = incoming;
  return { webhookId, namespaceId, pluginId, requestId, traceId };
}
