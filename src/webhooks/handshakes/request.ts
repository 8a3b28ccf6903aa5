import type { RequestPlace } from '../../contracts/index.ts';
import { readDotPath } from '../../kit/data/json.ts';

/** A request that may be a handshake. */
export interface HandshakeRequest {
  method: string;
  /** Names and values in the flat list of Node. */
  rawHeaders: readonly string[];
  /** The request target as sent. */
  url: string;
  /** Parsed body. Undefined for a body that is not in the webhook's format. */
  payload: unknown;
}

/**
 * Returns the value of a place. Returns undefined if the value is missing, or if a header or query parameter is
 * repeated, because the valid value is then unclear.
 */
export function readPlace({ header, query, field }: RequestPlace, request: HandshakeRequest): unknown {
  if (header !== undefined) return onlyHeader(request.rawHeaders, header.toLowerCase());
  if (query !== undefined) return onlyParameter(request.url, query);
  return readDotPath(request.payload, field!);
}

function onlyHeader(rawHeaders: readonly string[], name: string): string | undefined {
  let found: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() !== name) continue;
    if (found !== undefined) return undefined;
    found = rawHeaders[i + 1]!;
  }
  return found;
}

function onlyParameter(url: string, name: string): string | undefined {
  const mark = url.indexOf('?');
  if (mark === -1) return undefined;
  const values = new URLSearchParams(url.slice(mark + 1)).getAll(name);
  return values.length === 1 ? values[0] : undefined;
}
