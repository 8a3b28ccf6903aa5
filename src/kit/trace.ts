import { createHash } from 'node:crypto';
import type { Random } from './random.ts';

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/;
const NOTHING = /^0+$/;
/** Visible ASCII without spaces and without `<`, `>`, `"` and `'`, which could end up as markup in a page that shows the id. */
const SANE_ID = /^[!#-&(-;=?-~]{1,128}$/;

/** Keeps an id that a client sent when it is short and visible, else makes one. @spec docs/gateway.md "Requests" */
export function saneId(sent: string | string[] | undefined, random: Random): string {
  return typeof sent === 'string' && SANE_ID.test(sent) ? sent : random.uuid();
}

/** The trace a request belongs to: `X-Trace-ID`, else that of a W3C `traceparent`, else a new one (32 hex digits). */
export function traceIdOf(headers: Record<string, string | string[] | undefined>, random: Random): string {
  const sent = headers['x-trace-id'];
  if (typeof sent === 'string' && SANE_ID.test(sent)) return sent;
  const parent = headers.traceparent;
  const match = typeof parent === 'string' ? TRACEPARENT.exec(parent) : null;
  if (match && !NOTHING.test(match[1]!)) return match[1]!;
  return random.uuid().replaceAll('-', '');
}

/** A new span's id: 16 hex digits. */
export function newSpanId(random: Random): string {
  return spanIdOf(random.uuid());
}

/** The random end of a UUID as a span's id, for who has one at hand that is nobody else's. */
export function spanIdOf(uuid: string): string {
  return uuid.slice(19, 23) + uuid.slice(24);
}

/** The span of the caller, as its `traceparent` names it. */
export function parentSpanOf(traceparent: unknown): string | undefined {
  const match = typeof traceparent === 'string' ? TRACEPARENT.exec(traceparent) : null;
  return match && !NOTHING.test(match[2]!) ? match[2] : undefined;
}

const TRACE_ID = /^[0-9a-f]{32}$/;

/** The trace as W3C writes it: a trace id of another form is hashed, so that all services derive the same one from it. */
export function w3cTraceId(traceId: string): string {
  if (TRACE_ID.test(traceId) && !NOTHING.test(traceId)) return traceId;
  return createHash('sha256').update(traceId).digest('hex').slice(0, 32);
}

/** The W3C header that a call carries on from a span of ours. */
export function traceparent(traceId: string, spanId: string): string {
  return `00-${w3cTraceId(traceId)}-${spanId}-01`;
}

/**
 * The W3C header to send on from our span: trace and flags of the one that came, else made of the trace id. The trace id
 * counts where the two differ, as it is the one that the log has.
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
