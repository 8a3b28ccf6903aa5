import type { TargetKind } from '../../../../contracts/index.ts';
import { toRemoteError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { NewDelivery, WebhookInbox } from '../../../../store/ports/index.ts';
import { type CallHandler, type Handled, recordOf } from '../webhooks/dispatch/handler-call.ts';
import type { JsonPayload } from '../webhooks/receive/payload.ts';
import { effectiveSettings, kindOf } from './destination-settings.ts';
import { DestinationFailure, type HandOver, type HandOverTo } from './destinations/destination-call.ts';
import { expressionScope } from './expression-scope.ts';
import type { FanOut } from './fan-out.ts';
import type { SealedHeaders } from './sealed-headers.ts';
import type { SourceExpressions } from './source-expressions.ts';
import type { SourceEntry, StoredDestination } from './source-records.ts';
import type { SourceRegistry } from './source-registry.ts';

export interface SourceCallsDeps {
  registry: Pick<SourceRegistry, 'find' | 'reread'>;
  fanOut: Pick<FanOut, 'toAll'>;
  expressions: SourceExpressions;
  sealedHeaders: Pick<SealedHeaders, 'read'>;
  inbox: Pick<WebhookInbox, 'find'>;
  destinations: Readonly<Record<TargetKind, HandOverTo>>;
  logger: Logger;
}

/** Runs the attempts of deliveries to sources and to their destinations. @spec docs/sources.md */
export class SourceCalls {
  readonly #deps: SourceCallsDeps;

  constructor(deps: SourceCallsDeps) {
    this.#deps = deps;
  }

  /** Never rejects. */
  readonly call: CallHandler = async (delivery, _target, payload, _deliveryId, attempt = 1) => {
    try {
      return succeeded(await this.#run(delivery, payload, attempt));
    } catch (error) {
      this.#report(delivery, error);
      return failed(error);
    }
  };

  async #run(delivery: NewDelivery, payload: JsonPayload, attempt: number): Promise<unknown> {
    const { event, instanceId } = delivery;
    const entry = await this.#entryOf(delivery);
    if (!entry) throw gone(`The source ${event} was deleted.`);
    const whole = await this.#withBody(delivery);
    if (instanceId === '') return { destinations: await this.#deps.fanOut.toAll(whole, payload, entry) };
    const destination = entry.destinations.get(instanceId);
    if (!destination) throw gone(`The destination ${instanceId} of ${event} was deleted.`);
    return this.#handOver(whole, payload, { entry, destination, attempt });
  }

  async #handOver(
    delivery: NewDelivery,
    payload: JsonPayload,
    { entry, destination, attempt }: { entry: SourceEntry; destination: StoredDestination; attempt: number },
  ): Promise<unknown> {
    const { expressions, sealedHeaders, destinations } = this.#deps;
    const { source } = entry;
    const { settings, mayBePrivate } = destination;
    const { filter, transform } = settings;
    const scope = expressionScope(delivery, payload, source);
    if (filter !== null && !(await finalFailure(expressions.matches(filter, scope))))
      return { filtered: true };
    const isTransformed = transform !== null;
    const value = isTransformed ? await finalFailure(expressions.transform(transform, scope)) : scope.body;
    const handOver: HandOver = {
      ...{ delivery, settings, mayBePrivate, attempt, value, isTransformed },
      timeoutMs: effectiveSettings(settings).timeoutMs,
      originalHeaders: () => sealedHeaders.read(delivery.headers, [source.namespaceId, source.name]),
      body: isTransformed ? Buffer.from(JSON.stringify(value)) : (delivery.body ?? Buffer.alloc(0)),
    };
    return destinations[kindOf(settings)](handOver);
  }

  /**
   * Returns the source of a delivery. If the source or the destination is unknown, it is read from the store again,
   * because another gateway might have created it a moment ago.
   */
  async #entryOf({ namespaceId, event, instanceId }: NewDelivery): Promise<SourceEntry | undefined> {
    const { registry } = this.#deps;
    const known = registry.find(namespaceId, event);
    if (known && (instanceId === '' || known.destinations.has(instanceId))) return known;
    await registry.reread(namespaceId, event);
    return registry.find(namespaceId, event);
  }

  /** Returns the delivery with its body, which is only in the store between attempts. */
  async #withBody(delivery: NewDelivery): Promise<NewDelivery> {
    if (delivery.body !== null) return delivery;
    const record = await this.#deps.inbox.find(delivery.webhookId);
    return record ? { ...delivery, body: record.body } : delivery;
  }

  #report(delivery: NewDelivery, error: unknown): void {
    const { webhookId, event, instanceId, requestId, traceId, namespaceId, pluginId } = delivery;
    const place = instanceId === '' ? event : `${event} to ${instanceId}`;
    this.#deps.logger.warn(`The delivery of ${place} failed: ${(error as Error).message}`, {
      ...{ requestId, traceId, pluginId, tenantId: namespaceId },
      meta: { webhookId },
      ...(error instanceof DestinationFailure ? {} : { error }),
    });
  }
}

/** Makes the failure of an expression final: the same expression gives the same result for the same delivery. */
async function finalFailure<T>(value: Promise<T>): Promise<T> {
  try {
    return await value;
  } catch (error) {
    const { message, details } = toRemoteError(error);
    throw new DestinationFailure(message, { isFinal: true, details });
  }
}

function gone(message: string): DestinationFailure {
  return new DestinationFailure(message, { isFinal: true });
}

function succeeded(result: unknown): Handled {
  return { succeeded: true, httpStatus: 202, body: null, record: recordOf({ result }) };
}

function failed(thrown: unknown): Handled {
  const remote = toRemoteError(thrown);
  const isFailure = thrown instanceof DestinationFailure;
  const error = isFailure
    ? { code: 'EXECUTION_ERROR', message: thrown.message, details: thrown.details }
    : { code: remote.code, message: remote.message, details: remote.details };
  return {
    succeeded: false,
    httpStatus: 202,
    body: null,
    record: recordOf({ error }),
    ...(isFailure ? { isFinal: thrown.isFinal, retryAfterMs: thrown.retryAfterMs } : {}),
  };
}
