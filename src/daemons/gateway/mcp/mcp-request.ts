import type { IncomingHttpHeaders } from 'node:http';
import { MCP_PATH } from '../../../contracts/index.ts';

/** The MCP library does not read the URL, and parsing that of each request takes time. */
const URL_OF_REQUESTS = `http://localhost${MCP_PATH}`;
const READ_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type', 'last-event-id']);

/** Returns a request for the MCP library, with the headers that it reads. Tokens are not passed on. */
export function mcpRequest(method: string, headers: IncomingHttpHeaders, signal: AbortSignal): Request {
  const read: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (typeof value === 'string' && (READ_HEADERS.has(name) || name.startsWith('mcp-'))) read[name] = value;
  const request = new Request(URL_OF_REQUESTS, { method, headers: read });
  // The constructor would copy the signal and register the copy with the garbage collector, 5 % of the time of a call.
  return Object.defineProperty(request, 'signal', { value: signal });
}
