import { messageOf } from '../errors/errors.ts';
import type { Clock } from '../time/clock.ts';
import { seconds } from '../time/duration.ts';
import type { Logger } from './logger.ts';
import { otlpRequest, type TimedSpan } from './otlp-request.ts';
import { maskTenantSecretsIn } from './redact.ts';
import type { EndedSpan, OtlpTarget, Tracer } from './tracer.ts';

/**
 * Exports spans as OTLP over HTTP with JSON, which every collector accepts. This module is loaded only if an endpoint
 * is set.
 */

const SEND_EVERY_MS = seconds(1);
const MAX_BATCH_SPANS = 512;
/** Maximum number of spans in the export queue. Further spans are dropped. */
const MAX_QUEUED_SPANS = 4096;
const TIMEOUT_MS = seconds(5);

export interface OtlpTracerOptions extends OtlpTarget {
  service: string;
  clock: Clock;
  logger: Logger;
}

/** Sends queued spans once a second. Drops spans that cannot be sent. Logs one warning per outage. */
export class OtlpTracer implements Tracer {
  readonly #options: OtlpTracerOptions;
  readonly #queue: TimedSpan[] = [];
  #isScheduled = false;
  #dropped = 0;
  #hasWarned = false;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: OtlpTracerOptions) {
    this.#options = options;
  }

  ended(span: EndedSpan): void {
    if (this.#queue.length >= MAX_QUEUED_SPANS) {
      this.#reportDropped(1, new Error('spans arrive faster than the collector accepts them'));
      return;
    }
    const { clock } = this.#options;
    const { 'svc.tenant_id': tenantId } = span.attributes;
    const masked = typeof tenantId === 'string' ? maskTenantSecretsIn(span, tenantId) : span;
    this.#queue.push({ span: masked, endedAt: clock.now() });
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    clock.after(SEND_EVERY_MS, () => {
      this.#isScheduled = false;
      void this.close();
    });
  }

  close(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, MAX_BATCH_SPANS);
      this.#sending = this.#sending.then(() => this.#post(batch));
    }
    return this.#sending;
  }

  async #post(batch: TimedSpan[]): Promise<void> {
    const { endpoint, headers, service } = this.#options;
    try {
      const response = await fetch(`${endpoint}/v1/traces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(otlpRequest(batch, service)),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`the collector answered ${response.status}`);
      this.#hasWarned = false;
    } catch (error) {
      this.#reportDropped(batch.length, error);
    }
  }

  #reportDropped(count: number, error: unknown): void {
    const { endpoint, logger } = this.#options;
    this.#dropped += count;
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    logger.diagnostic({
      domain: 'tracing',
      event: 'tracing.export_failed',
      level: 'warn',
      reasonCode: 'TRACES_DROPPED',
      message: `Spans cannot be sent to ${endpoint} and are dropped until the collector accepts them: ${messageOf(error)}`,
      outcome: 'degraded',
      evidence: { endpoint, dropped: this.#dropped },
    });
  }
}
