import type { FastifyReply, FastifyRequest } from 'fastify';
import { HEADERS } from '../contracts/index.ts';
import { errorBody, type PlatformError } from '../kit/errors/errors.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import { sendRawError } from './raw-error.ts';
import { pathOf } from './request-path.ts';
import { toHttpError } from './to-http-error.ts';

const RAW_HEADERS = new Set<string>([
  HEADERS.requestId,
  'x-content-type-options',
  'content-type',
  'content-length',
]);

/** Sends an error body for any value thrown while handling a request. Server errors (5xx) are logged in full. */
export function sendError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  logger: Logger,
): void {
  const error = toHttpError(thrown);
  if (error.status >= 500) {
    logger.error(
      `${request.method} ${request.routeOptions.url ?? pathOf(request.url)} failed: ${error.message}`,
      {
        requestId: request.id,
        traceId: request.traceId,
        error: error.cause ?? error,
      },
    );
  }
  // Fastify stops reading a body that is too large. A connection with unread data cannot be reused.
  if (error.code === 'PAYLOAD_TOO_LARGE') reply.header('connection', 'close');
  if (request.raw.complete) {
    reply
      .code(error.status)
      .headers({ [HEADERS.requestId]: request.id, ...error.headers })
      .send(errorBody(error));
  } else sendUnread(error, request, reply);
}

/**
 * Sends an error while the request body is still arriving. Fastify would close the connection with unread data. The
 * client could then lose the response because of a connection reset.
 */
function sendUnread(error: PlatformError, request: FastifyRequest, reply: FastifyReply): void {
  if (request.server.kit.draining) reply.header('connection', 'close');
  const set = Object.entries(reply.getHeaders());
  const extra = set.filter(([name]) => !RAW_HEADERS.has(name) && !Object.hasOwn(error.headers, name));
  reply.hijack();
  sendRawError(reply.raw, error, request.id, extra.flat().map(String));
}
