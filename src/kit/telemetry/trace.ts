import { createHash, hash } from 'node:crypto';
import type { Random } from '../security/random.ts';

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/;
const ALL_ZEROS = /^0+$/;
/** Matches visible ASCII without `<`, `>`, `"` and `'`, because an id can be shown in HTML. */
const SANE_ID = /^[!#-&(-;=?-~]{1,128}$/;

/** Returns the client's id if it is short and safe, otherwise a new id. @spec docs/gateway.md "Requests" */
export function saneId(sent: string | string[] | undefined, random: Random): string {
  return typeof sent === 'string' && SANE_ID.test(sent) ? sent : random.uuid();
}

/**
 * Returns the trace id of a request. Prefers `X-Trace-ID`, then the id in `traceparent`, then a new id of 32 hex
 * digits.
 */
export function traceIdOf(headers: Record<string, string | string[] | undefined>, random: Random): string {
  const sent = headers['x-trace-id'];
  if (typeof sent === 'string' && SANE_ID.test(sent)) return sent;
  const parent = headers.traceparent;
  const match = typeof parent === 'string' ? TRACEPARENT.exec(parent) : null;
  if (match && !ALL_ZEROS.test(match[1]!)) return match[1]!;
  return random.uuid().replaceAll('-', '');
}

/** Creates a span id of 16 hex digits. */
export function newSpanId(random: Random): string {
  return spanIdOf(random.uuid());
}

/** Derives a span id from the random part of a UUID. The UUID must not be used for another span. */
export function spanIdOf(uuid: string): string {
  return uuid.slice(19, 23) + uuid.slice(24);
}

/** Derives a span id from parts such as a run id, so that all processes use the same id for the same work. */
export function derivedSpanId(...parts: Array<string | number>): string {
  return hash('sha256', parts.join('\n')).slice(0, 16);
}

/** Returns the caller's span id from a `traceparent` header. Returns undefined if the header is missing or invalid. */
export function parentSpanOf(traceparent: unknown): string | undefined {
  const match = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent) : null;
  return match && !ALL_ZEROS.test(match[2]!) ? match[2] : undefined;
}

const TRACE_ID = /^[0-9a-f]{32}$/;

/** Converts a trace id to W3C form. Trace ids in other forms are hashed, so that all services derive the same id. */
export function w3cTraceId(traceId: string): string {
  if (TRACE_ID.test(traceId) && !ALL_ZEROS.test(traceId)) return traceId;
  return createHash('sha256').update(traceId).digest('hex').slice(0, 32);
}

/** Returns the `traceparent` header for a call within a span of this process. */
export function traceparent(traceId: string, spanId: string): string {
  return `00-${w3cTraceId(traceId)}-${spanId}-01`;
}

/**
 * Returns the `traceparent` header for calls that this process sends. The trace id is the same as in the logs. Keeps
 * the client's sampling flag if the client sent the same trace id.
 */
export function traceparentOf(
  headers: Record<string, string | string[] | undefined>,
  traceId: string,
  spanId: string,
): string {
  const sent = headers.traceparent;
  const trace = w3cTraceId(traceId);
  const unsampled = typeof sent === 'string' && sent.startsWith(`00-${trace}-`) && sent.endsWith('-00');
  return `00-${trace}-${spanId}-${unsampled ? '00' : '01'}`;
}
