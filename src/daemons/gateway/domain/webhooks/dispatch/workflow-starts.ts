import type { DeliveredEvent, DeliveryStarts, TriggeringWebhook } from '../../../../../contracts/index.ts';
import { codeOf, errorBody, toRemoteError } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import { systemClock } from '../../../../../kit/time/clock.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';
import type { CallHandler, Handled } from './handler-call.ts';
import type { WebhookTriggers } from './workflow-triggers.ts';

export interface WebhookWorkflowsDeps {
  triggers: WebhookTriggers;
  /** Starts the workflows of a delivery. Repeated calls return the runs that the first call started. */
  start(delivery: NewDelivery, event: DeliveredEvent): Promise<DeliveryStarts>;
  logger: Logger;
}

/**
 * Retry window for starting workflows, in ms. The async window covers a restart of the workflow service. The sync
 * window is shorter, because the sender waits and can retry.
 */
const RETRY_WINDOW_MS = { sync: seconds(3), async: seconds(15) } as const;
const PAUSE_MS = 250;
const PASSING = new Set(['UPSTREAM_UNAVAILABLE', 'UPSTREAM_TIMEOUT', 'SERVICE_UNAVAILABLE', 'STORE_ERROR']);

/**
 * Starts workflows after a successful handler. The delivery succeeds once the workflow runs are on disk. After an
 * earlier crash, the delivery runs again, but its workflow runs are not started twice. @spec
 * docs/workflows.md "Started by a webhook"
 */
export function startingWorkflows(
  call: CallHandler,
  { triggers, start, logger }: WebhookWorkflowsDeps,
): CallHandler {
  async function startRuns(
    delivery: NewDelivery,
    handled: Handled,
    payload: unknown,
    deliveryId: string | null,
  ): Promise<Handled> {
    try {
      const { webhookId, pluginId, event, instanceId, receivedAt, mode } = delivery;
      const instance = instanceId === '' ? null : instanceId;
      const told = {
        webhookId,
        ...(deliveryId === null ? {} : { deliveryId }),
        pluginId,
        event,
        instanceId: instance,
        receivedAt,
        payload,
      } as DeliveredEvent;
      const started = await withRetries(RETRY_WINDOW_MS[mode], () => start(delivery, told));
      return { ...handled, record: JSON.stringify({ ...JSON.parse(handled.record), workflows: started }) };
    } catch (thrown) {
      return notStarted(delivery, thrown);
    }
  }

  function notStarted({ webhookId, requestId, traceId, ...delivery }: NewDelivery, thrown: unknown): Handled {
    const error = toRemoteError(thrown);
    logger.error(`The workflows of delivery ${webhookId} could not be started: ${error.message}`, {
      requestId,
      traceId,
      tenantId: delivery.namespaceId,
      pluginId: delivery.pluginId,
      error: thrown,
    });
    const body = errorBody(error);
    const { status: httpStatus, headers } = error;
    return { succeeded: false, httpStatus, body, headers, record: JSON.stringify(body) };
  }

  return async (delivery, target, payload, deliveryId) => {
    const handled = await call(delivery, target, payload, deliveryId);
    if (!handled.succeeded) return handled;
    const { pluginId, event } = delivery;
    const starts = triggers.starts({ pluginId, event } as TriggeringWebhook);
    if (starts === false || !(await starts)) return handled;
    return startRuns(delivery, handled, payload.value, deliveryId);
  };
}

/** Retries in wall-clock time even with a test clock, because the retried call goes to another process. */
async function withRetries<T>(windowMs: number, work: () => Promise<T>): Promise<T> {
  for (let left = windowMs; ; left -= PAUSE_MS) {
    try {
      return await work();
    } catch (error) {
      if (left <= 0 || !PASSING.has(codeOf(error) ?? '')) throw error;
      await new Promise<void>((resolve) => systemClock.after(PAUSE_MS, resolve));
    }
  }
}
