import type { ServerResponse } from 'node:http';
import { HEADERS } from '../contracts/index.ts';
import { errorBody, type PlatformError } from '../kit/errors.ts';

/** Answers a request that was taken from Fastify (`reply.hijack`) in the error shape. */
export function sendRawError(res: ServerResponse, error: PlatformError, requestId: string): void {
  if (res.headersSent || res.destroyed) return;
  const body = Buffer.from(JSON.stringify(errorBody(error)));
  res.writeHead(error.status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    [HEADERS.requestId]: requestId,
    ...error.headers,
  });
  res.end(body);
}
