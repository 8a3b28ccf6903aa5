import { type CommandResult, type HostKind, LIMITS } from '../../../../../contracts/index.ts';
import { errorBody, messageOf, PlatformError, toRemoteError } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import { NO_TENANT, redact } from '../../../../../kit/telemetry/redact.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';
import { receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import type { JsonPayload } from '../receive/payload.ts';
import { requestOf } from '../receive/request-head.ts';
import type { DeclaredWebhook, WebhookPlugin } from '../receive/targets.ts';
import { deliverySpan } from './delivery-span.ts';
import { handlerReplyOf, type ReplyContent } from './handler-reply.ts';

/** Runs a handler on the backend that its plugin uses. */
export type Execute = (call: {
  plugin: WebhookPlugin;
  handler: string;
  host: HostKind;
  hostContext: Record<string, unknown>;
  input: unknown;
  /** The handler's input as JSON text. */
  inputText: string;
  tenantId: string;
  requestId: string;
  traceId: string;
  parentSpanId?: string;
  timeoutMs: number;
}) => Promise<CommandResult>;

/** Outcome of a handler run, for the response to the sender and for the record. */
export interface Handled {
  succeeded: boolean;
  httpStatus: number;
  body: unknown;
  /** Response headers, such as Retry-After. */
  headers?: Record<string, string>;
  /** Response body that replaces `body`, from a handler that declares `reply: "handler"`. */
  content?: ReplyContent;
  /** The outcome as JSON, for the delivery's record. */
  record: string;
  /** Whether further attempts cannot succeed. Such a failed delivery is dead at once. */
  isFinal?: boolean;
  /** Minimum time until the next attempt, which the receiver asked for. */
  retryAfterMs?: number | undefined;
}

export type CallHandler = (
  delivery: NewDelivery,
  target: DeclaredWebhook,
  payload: JsonPayload,
  /**
   * Delivery id of the sender, by which workflow starts are deduplicated. If null, workflow starts are deduplicated by
   * webhook id. Set only if each redelivery gets its own record.
   */
  deliveryId: string | null,
  /** Number of this attempt, from 1. Only for async deliveries. */
  attempt?: number,
) => Promise<Handled>;

/** Maximum length of a recorded handler result, in characters. */
const MAX_RECORD_CHARS = 16 * 1024;

export function handlerTimeoutMs({ plugin, webhook }: DeclaredWebhook): number {
  return webhook.timeoutMs ?? plugin.manifest.permissions.quotas?.timeoutMs ?? LIMITS.routeTimeoutMs;
}

/**
 * Creates the function that calls webhook handlers. The created function never rejects. @spec Webhook delivery step 7;
 * Webhook handler context
 */
export function createHandlerCall(execute: Execute, logger: Logger): CallHandler {
  /**
   * Logs a failure that the handler returned. For async deliveries, the level is `error`, because the sender got its
   * response before the handler ran and does not see the failure.
   */
  function logReturnedFailure(delivery: NewDelivery, { exitCode, error }: CommandResult): void {
    const { webhookId, pluginId, event, mode } = delivery;
    const code = error?.code ?? 'EXECUTION_ERROR';
    const message = error?.message ?? `exit code ${exitCode}`;
    logger[mode === 'async' ? 'error' : 'warn'](
      `The handler of ${pluginId} ${event} returned a failure: ${code}: ${message}`,
      { ...logFieldsOf(delivery), meta: { webhookId, code, exitCode, mode } },
    );
  }

  /** Returns the handler's own response. An invalid one is a failure. */
  function replied(
    delivery: NewDelivery,
    { plugin, webhook }: DeclaredWebhook,
    { result }: CommandResult,
  ): Handled {
    const reply = handlerReplyOf(result);
    if (!('fault' in reply)) {
      const { status: httpStatus, headers, content } = reply;
      return { succeeded: true, httpStatus, body: null, headers, content, record: recordOf({ result }) };
    }
    const { webhookId } = delivery;
    const message = `The handler of ${plugin.id} ${webhook.event} returned no valid reply {status, headers, body}: ${reply.fault}.`;
    logger.error(message, { ...logFieldsOf(delivery), meta: { webhookId } });
    const error = new PlatformError('INVALID_HANDLER_REPLY', message);
    const body = { error: { code: error.code, ...publicPart(error, webhookId) } };
    return { succeeded: false, httpStatus: error.status, body, record: recordOf(errorBody(error)) };
  }

  return async (delivery, target, payload) => {
    const { webhookId, namespaceId, event, source, instanceId, requestId, traceId } = delivery;
    const { plugin, webhook } = target;
    const parentSpanId = deliverySpan(delivery);
    const instance = webhook.multi ? { instanceId } : {};
    const request = requestOf(delivery.headers);
    try {
      const result = await execute({
        plugin,
        handler: webhook.handler,
        host: 'webhook',
        hostContext: {
          ...{ host: 'webhook', event, namespaceId, webhookId, source, ...instance },
          ...request,
          ...bytesOf(request.headers['content-type'], payload),
        },
        input: payload.value,
        inputText: payload.text,
        tenantId: namespaceId,
        requestId,
        traceId,
        ...(parentSpanId === undefined ? {} : { parentSpanId }),
        timeoutMs: handlerTimeoutMs(target),
      });
      // The sender of an async delivery has got its response already.
      const repliesItself = delivery.mode === 'sync' && receiveRulesOf(webhook).reply === 'handler';
      if (result.exitCode === 0)
        return repliesItself ? replied(delivery, target, result) : succeeded(webhookId, result);
      logReturnedFailure(delivery, result);
      return failed(result);
    } catch (thrown) {
      const error = toRemoteError(thrown);
      logger.error(`The handler of ${delivery.pluginId} ${event} failed: ${messageOf(thrown)}`, {
        ...logFieldsOf(delivery),
        meta: { webhookId, code: error.code },
        error: thrown,
      });
      const told = { error: { code: error.code, message: error.message, details: error.details } };
      const body = { error: { ...told.error, ...publicPart(error, webhookId) } };
      const { status: httpStatus, headers } = error;
      return { succeeded: false, httpStatus, body, headers, record: recordOf(told) };
    }
  };
}

/** Returns the content type and the bytes of the body, for webhooks that declare its format. */
function bytesOf(
  contentType: string | undefined,
  { raw }: JsonPayload,
): { contentType?: string | undefined; raw?: string } {
  return raw === undefined ? {} : { contentType, raw: raw.toString('base64') };
}

function logFieldsOf({ requestId, traceId, namespaceId, pluginId }: NewDelivery) {
  return { requestId, traceId, tenantId: namespaceId, pluginId };
}

/**
 * Returns the parts of an error that the sender is allowed to see. Exception messages are only recorded and logged,
 * because such messages can contain confidential data.
 */
function publicPart({ code, message, details }: PlatformError, webhookId: string) {
  if (code !== 'EXECUTION_ERROR' && code !== 'INVALID_HANDLER_REPLY')
    return { message, details: { ...details, webhookId } };
  return {
    message: 'The handler of this webhook failed; the operator finds the reason by the webhookId.',
    details: { webhookId },
  };
}

function succeeded(webhookId: string, { result }: CommandResult): Handled {
  const value = result ?? null;
  const body = { status: 'ok', webhookId, result: value };
  return { succeeded: true, httpStatus: 200, body, record: recordOf({ result: value }) };
}

function failed({ error, exitCode }: CommandResult): Handled {
  const body = {
    error: {
      code: error?.code ?? 'EXECUTION_ERROR',
      message: error?.message ?? `The handler ended with exit code ${exitCode}.`,
      details: error?.details ?? {},
    },
  };
  return { succeeded: false, httpStatus: 500, body, record: recordOf(body) };
}

/** Returns an outcome for the record. Secrets of the tenant are masked before. A large outcome is left out. */
export function recordOf(outcome: unknown): string {
  const text = JSON.stringify(redact(outcome, NO_TENANT));
  return text.length <= MAX_RECORD_CHARS ? text : JSON.stringify({ truncated: true, bytes: text.length });
}
