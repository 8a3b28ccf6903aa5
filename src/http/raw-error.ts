import type { ServerResponse } from 'node:http';
import { HEADERS } from '../contracts/index.ts';
import { errorBody, type PlatformError } from '../kit/errors/errors.ts';
import { endUnread } from './linger.ts';

/**
 * Sends an error body without Fastify. `extra` alternates header names and values. If `isLast` is true, the connection
 * closes after the response.
 */
export function sendRawError(
  res: ServerResponse,
  error: PlatformError,
  requestId: string,
  extra: readonly string[] | null = null,
  isLast = false,
): void {
  if (res.headersSent || res.destroyed) return;
  const body = Buffer.from(JSON.stringify(errorBody(error)));
  res.writeHead(error.status, [
    ...['content-type', 'application/json; charset=utf-8', 'content-length', String(body.length)],
    ...[HEADERS.requestId, requestId, 'x-content-type-options', 'nosniff'],
    ...Object.entries(error.headers).flat(),
    ...(extra ?? []),
    ...(isLast && error.headers.connection === undefined ? ['connection', 'close'] : []),
  ]);
  if (res.req.complete) res.end(body);
  else endUnread(res.req, res, body);
}
