import type { AnalyticsEvent, LogRecord, TraceSpan } from '../../../../contracts/index.ts';
import { derivedSpanId } from '../../../../kit/telemetry/trace.ts';

/** Returns the span of an answered request, or undefined if the log record is not an access line. */
export function requestSpan({ layer, time, meta, ...log }: LogRecord): TraceSpan | undefined {
  const { method, route, status, durationMs, parentSpanId } = meta ?? {};
  if (layer !== 'http' || log.spanId === undefined || typeof durationMs !== 'number') return undefined;
  return {
    id: log.spanId,
    parentId: textOf(parentSpanId) ?? null,
    kind: 'request',
    name: `${method} ${route}`,
    service: log.serviceId,
    startedAt: time - durationMs,
    durationMs,
    status: Number(status) >= 500 ? 'failed' : 'ok',
    result: String(status),
    error: null,
    ...(log.requestId === undefined ? {} : { requestId: log.requestId }),
    attributes: {},
  };
}

/** Platform calls that are spans of their own. */
const CALL = /^(?:cache|storage|vectorStore|embeddings|llm)\./;
const HANDLER = /^plugin\.command\.(?:completed|failed)$/;
const FETCH = /^fetch\.request\.(?:completed|failed)$/;
const SERVICES: Readonly<Record<string, string>> = {
  webhook: 'gateway',
  validator: 'gateway',
  workflow: 'workflow',
  job: 'workflow',
};

type Payload = Record<string, unknown>;

/**
 * Returns the span of an event: a handler, a platform call or an outgoing request. Returns undefined for other events,
 * and for events that sum up several calls.
 */
export function eventSpan(event: AnalyticsEvent): TraceSpan | undefined {
  const { type, ctx = {} } = event;
  const payload = (event.payload ?? {}) as Payload;
  if (ctx.count !== undefined) return undefined;
  if (HANDLER.test(type)) return handlerSpan(event, payload);
  if (FETCH.test(type)) {
    const failed = type.endsWith('failed');
    const error = { code: String(payload.result), message: `The call to ${payload.host} failed.` };
    return {
      ...callOf(event, payload),
      kind: 'outgoing',
      name: `${payload.method} ${payload.host}`,
      status: failed ? 'failed' : 'ok',
      result: String(payload.result),
      error: failed ? error : null,
    };
  }
  if (!CALL.test(type)) return undefined;
  return {
    ...callOf(event, payload),
    kind: 'call',
    name: type.replace(/\.completed$/, ''),
    status: 'ok',
    result: 'ok',
    error: null,
  };
}

function handlerSpan(event: AnalyticsEvent, payload: Payload): TraceSpan {
  const { ctx = {} } = event;
  const exitCode = Number(payload.exitCode);
  const code = textOf(ctx.code) ?? 'EXECUTION_ERROR';
  return {
    ...callOf(event, {}),
    id: textOf(ctx.spanId) ?? derivedSpanId(event.id),
    kind: 'handler',
    name: `${payload.pluginId} ${payload.commandId}`,
    ...timeOf(event, payload),
    status: exitCode === 0 ? 'ok' : 'failed',
    result: `exit code ${exitCode}`,
    error: exitCode === 0 ? null : { code, message: `The handler ended with exit code ${exitCode}.` },
    pluginId: String(payload.pluginId),
    attributes: { host: String(ctx.host) },
  };
}

function callOf(event: AnalyticsEvent, payload: Payload) {
  const { ctx = {}, runId, source } = event;
  const host = textOf(ctx.host) ?? '';
  const isRun = host === 'workflow' || host === 'job';
  const requestId = textOf(ctx.requestId);
  const shown = Object.entries(payload).filter(
    (entry): entry is [string, string | number] =>
      entry[0] !== 'durationMs' && (typeof entry[1] === 'string' || typeof entry[1] === 'number'),
  );
  return {
    id: derivedSpanId(event.id),
    parentId: textOf(ctx.parentSpanId) ?? null,
    service: SERVICES[host] ?? 'rest',
    ...timeOf(event, payload),
    ...(requestId === undefined ? {} : { requestId }),
    ...(isRun ? { [host === 'job' ? 'jobId' : 'runId']: runId } : {}),
    ...(source.product === 'svc' ? {} : { pluginId: source.product }),
    attributes: Object.fromEntries(shown),
  };
}

/** Events are written when the work ends. */
function timeOf({ ts }: AnalyticsEvent, { durationMs }: Payload) {
  const took = typeof durationMs === 'number' ? durationMs : 0;
  return { startedAt: Date.parse(ts) - took, durationMs: took };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
