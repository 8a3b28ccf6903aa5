import type { Caller, WebhookHandlerDecl } from '../../../../../contracts/index.ts';
import { HEADERS } from '../../../../../contracts/index.ts';
import type { MaybePromise } from '../../../../../kit/data/maybe-promise.ts';
import { codeOf, errorBody, PlatformError, toRemoteError } from '../../../../../kit/errors/errors.ts';
import type { CreateLimiter } from '../../../../../kit/limits/rate-limiter.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';
import type { Fence } from '../../../../membership/membership.ts';
import { REPEATED, singleHeader } from '../../raw-headers.ts';
import type { WebhookPauses } from '../admin/pauses.ts';
import type { DeliveryEnds } from '../dispatch/delivery-ends.ts';
import type { CallHandler } from '../dispatch/handler-call.ts';
import type { NeededServices } from '../dispatch/needed-services.ts';
import type { WebhookDispatcher } from '../dispatch/webhook-dispatcher.ts';
import { Authentication } from '../verify/authentication.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';
import type { WebhookVerifier } from '../verify/verifier.ts';
import { Acceptance } from './acceptance.ts';
import { Admission } from './admission.ts';
import { answerChallenge } from './challenge.ts';
import {
  type DeliveryContext,
  deliveryOf,
  type IncomingDelivery,
  newDeliveryContext,
} from './delivery-context.ts';
import { deliveryIdOf, markerKey } from './delivery-id.ts';
import { parseOnce } from './payload.ts';
import type { RefusalSamples } from './refusal-samples.ts';
import { mark } from './step-log.ts';
import type { DeclaredWebhook, WebhookTargets } from './targets.ts';

export type { IncomingDelivery } from './delivery-context.ts';

export interface DeliveryAnswer {
  status: number;
  body: unknown;
  headers: Record<string, string>;
  webhookId: string;
  /** Identity of the authenticated sender. Null before authentication. */
  caller: Caller | null;
  /**
   * Records that the response has been written or can no longer be written. The handler of an async delivery starts
   * only after this call.
   */
  answered: () => void;
}

export interface WebhookDeliveryDeps {
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  verifier: WebhookVerifier;
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
}

interface Answered {
  status: number;
  body: unknown;
  headers?: Record<string, string> | undefined;
  answered?: () => void;
  record: 'challenge' | 'duplicate' | 'handled';
}

const DUPLICATE: Answered = { status: 200, body: { status: 'duplicate' }, record: 'duplicate' };
const PAUSED_RETRY_SECONDS = '60';
/** Default value of the Retry-After header for errors without a Retry-After value, in seconds. */
const RETRY_SECONDS = '5';

/**
 * Processes a delivery in the step order of the specification. @spec Webhook delivery;
 * docs/webhooks.md "What the sender does"
 */
export class WebhookDelivery {
  readonly #deps: WebhookDeliveryDeps;
  readonly #admission: Admission;
  readonly #authentication: Authentication;
  readonly #acceptance: Acceptance;

  constructor(deps: WebhookDeliveryDeps) {
    this.#deps = deps;
    this.#admission = new Admission(deps);
    this.#authentication = new Authentication(deps);
    this.#acceptance = new Acceptance(deps);
  }

  /** Resolves with the response. Never rejects. */
  async receive(incoming: IncomingDelivery): Promise<DeliveryAnswer> {
    const context = newDeliveryContext(incoming, this.#deps.clock);
    this.#deps.dispatcher.receiving(1);
    try {
      const { status, body, headers, record, answered } = await this.#process(context);
      if (record !== 'handled') this.#note(context, record, status);
      return { ...answer(context, status, body, headers), answered: answered ?? noop };
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
      return answer(context, error.status, errorBody(error), error.headers);
    } finally {
      this.#deps.dispatcher.receiving(-1);
    }
  }

  async #process(context: DeliveryContext): Promise<Answered> {
    const { rawHeaders } = context.incoming;
    // The following code uses `await` only for promises, because `await` also delays the request if the value is not a
    // promise.
    const admission = this.#admission.admit(context);
    const admitted = admission instanceof Promise ? await admission : admission;
    const { target } = admitted;
    const { webhook } = target;

    const body = this.#readBody(context, webhook);
    const payload = parseOnce(body instanceof Promise ? await body : body);
    if (webhook.challenge) {
      const challenge = answerChallenge(webhook.challenge, payload());
      mark(context, 'challenge', challenge ? 'answered' : 'none');
      if (challenge) {
        const allowed = this.#authentication.allowUnauthenticated(context, admitted, { tries: false });
        if (allowed instanceof Promise) await allowed;
        return { status: 200, body: challenge, record: 'challenge' };
      }
    }
    const id = webhook.idempotencyKey && deliveryIdOf(webhook.idempotencyKey, rawHeaders, payload);
    context.deliveryId = id ?? null;
    const marker = id === undefined ? undefined : markerKey(context, id);
    if (webhook.idempotencyKey) {
      const found = marker === undefined ? undefined : this.#deps.inbox.seen(marker, this.#deps.clock.now());
      const isSeen = (found instanceof Promise ? await found : found) === 'done';
      mark(context, 'idempotency', isSeen ? 'seen' : marker ? 'new' : 'no id');
      if (isSeen) {
        const allowed = this.#authentication.allowUnauthenticated(context, admitted, { tries: true });
        if (allowed instanceof Promise) await allowed;
        return DUPLICATE;
      }
    }
    const authenticated = this.#authentication.authenticate(context, admitted);
    if (authenticated instanceof Promise) await authenticated;
    const permitted = this.#admission.takePermit(context, webhook);
    if (permitted instanceof Promise) await permitted;

    const parsed = payload();
    if (parsed.fault !== undefined)
      throw new PlatformError('VALIDATION_ERROR', `The body is not valid JSON: ${parsed.fault}.`);
    if (!webhook.async) {
      this.#requireRunning(context);
      const required = this.#requireServices(context, target);
      if (required) await required;
    }
    const accepted = await (webhook.async
      ? this.#acceptance.accept(context, target, parsed, marker)
      : this.#acceptance.handle(context, target, parsed, marker));
    if (accepted !== 'duplicate') return { ...accepted, record: 'handled' };
    this.#admission.givePermitBack(context);
    return DUPLICATE;
  }

  #readBody(context: DeliveryContext, webhook: WebhookHandlerDecl): MaybePromise<Buffer> {
    const encoding = singleHeader(context.incoming.rawHeaders, 'content-encoding');
    if (encoding && (encoding === REPEATED || encoding.toLowerCase() !== 'identity')) {
      mark(context, 'body', 'encoded');
      throw new PlatformError(
        'UNSUPPORTED_MEDIA_TYPE',
        'Send the body without Content-Encoding: the signature covers the unencoded bytes.',
      );
    }
    const keep = (body: Buffer): Buffer => {
      mark(context, 'body', 'ok');
      context.body = body;
      return body;
    };
    const fail = (error: unknown): never => {
      mark(context, 'body', codeOf(error) ?? 'failed');
      throw error;
    };
    try {
      const body = context.incoming.readBody(webhook.maxBodyBytes);
      return body instanceof Promise ? body.then(keep, fail) : keep(body);
    } catch (error) {
      return fail(error);
    }
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

  /** Records a request that ran no handler. The body of the request is not stored. */
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
  }
}

function answer(
  { webhookId, caller }: DeliveryContext,
  status: number,
  body: unknown,
  given: Record<string, string> = {},
): DeliveryAnswer {
  const headers: Record<string, string> = { [HEADERS.webhookId]: webhookId };
  for (const [name, value] of Object.entries(given)) headers[name.toLowerCase()] = value;
  if (status === 503) headers['retry-after'] ??= RETRY_SECONDS;
  return { status, body, headers, webhookId, caller, answered: noop };
}

function noop(): void {}
