import { setsSessionCookie } from '../domain/identity/session-cookie.ts';

/**
 * Response headers that are not forwarded. These are hop-by-hop headers, and headers that only the gateway is allowed
 * to set.
 */
export const DROPPED_FROM_ANSWERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
  'x-content-type-options',
  'access-control-allow-origin',
  'access-control-allow-credentials',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-expose-headers',
  'access-control-max-age',
]);

export interface ResponseHead {
  status: number;
  /** Flat list of names and values, for `writeHead`. */
  headers: string[];
  /** Content-Length in bytes, or null if the length is unknown. */
  contentLength: number | null;
}

/**
 * Builds the head of the response to the client. `upstream` and `extra` are flat lists of header names and values.
 * Names in `upstream` are in lower case.
 */
export function responseHead(
  status: number,
  upstream: readonly string[],
  requestId: string,
  extra: readonly string[] | null,
): ResponseHead {
  const headers = ['x-request-id', requestId, 'x-content-type-options', 'nosniff'];
  if (extra) headers.push(...extra);
  const own = headers.length;
  let contentLength: number | null = null;
  let named: Set<string> | undefined;
  for (let i = 0; i < upstream.length; i += 2) {
    const name = upstream[i]!;
    if (name === 'connection') named = namesIn(upstream[i + 1]!);
    if (DROPPED_FROM_ANSWERS.has(name)) continue;
    if (name === 'set-cookie' && setsSessionCookie(upstream[i + 1]!)) continue;
    if (name === 'content-length') contentLength = Number(upstream[i + 1]);
    headers.push(name, upstream[i + 1]!);
  }
  return { status, headers: named ? without(headers, named, own) : headers, contentLength };
}

function namesIn(connection: string): Set<string> | undefined {
  const text = connection.toLowerCase();
  if (text === 'keep-alive' || text === 'close') return undefined;
  return new Set(text.split(',').map((name) => name.trim()));
}

/** Removes headers by name from a flat list. The first `own` elements are headers of the gateway and are kept. */
function without(headers: string[], names: Set<string>, own: number): string[] {
  return headers.filter((_, index) => index < own || !names.has(headers[index - (index % 2)]!));
}
