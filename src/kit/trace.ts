import { createHash } from 'node:crypto';
import type { Random } from './random.ts';

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/;
const NOTHING = /^0+$/;
/** Visible ASCII without spaces. */
const SANE_ID = /^[\x21-\x7e]{1,128}$/;

/** Keeps an id that a client sent when it is short and visible, else makes one. @spec docs/decisions.md "Request ids" */
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

const TRACE_ID = /^[0-9a-f]{32}$/;

/**
 * The W3C header to send on: the one that came, or one made of the trace id. A trace id of another form is hashed, so
 * that all services derive the same trace from it.
 */
export function traceparentOf(
  headers: Record<string, string | string[] | undefined>,
  traceId: string,
): string {
  const sent = headers.traceparent;
  const match = typeof sent === 'string' ? TRACEPARENT.exec(sent) : null;
  if (match && !NOTHING.test(match[1]!) && !NOTHING.test(match[2]!)) return sent as string;
  const id =
    TRACE_ID.test(traceId) && !NOTHING.test(traceId)
      ? traceId
      : createHash('sha256').update(traceId).digest('hex').slice(0, 32);
  return `00-${id}-${id.slice(16)}-01`;
}
